// Pointer, wheel and keys on the chart of the timeline.

import { hasModifier, listen } from "./dom.js";
import { clamp } from "./format.js";
import { model } from "./model.js";
import { endOf } from "./timeline_data.js";

const DRAG_MIN = 5;
const PAN = 0.2;

/** Bars: hover and focus show a card, a click opens the event, arrow keys go from bar to bar. */
export function connectBars(chart, card) {
  const { element, svg } = chart;
  let isTouch = false;
  const barAt = (target) => chart.found(target.closest(".bar")?.dataset.key);

  listen(svg, {
    pointerdown: (down) => (isTouch = down.pointerType === "touch"),
    dragstart: (start) => start.preventDefault(),
    click: (click) => {
      const found = barAt(click.target);
      if (!found) return;
      const { bars, element: anchor } = found;
      const isUnknown = isTouch && !card.isOf(bars);
      if (chart.isDragged || isUnknown || bars.length > 1) click.preventDefault();
      if (chart.isDragged) return;
      chart.current = bars[0].key;
      if (isUnknown) card.show(bars, anchor, click.clientX);
      else if (bars.length > 1 && !zoomTo(chart, bars)) card.show(bars, anchor, null);
    },
    pointerover: (over) => {
      if (over.pointerType === "touch" || over.buttons) return;
      const found = barAt(over.target);
      if (found) card.plan(found.bars, found.element, over.clientX);
      else card.leave();
    },
    pointerleave: () => card.leave(),
  });

  const inOrder = ({ bars }, direction) => {
    const { order } = chart;
    const places = bars.map((bar) => order.indexOf(bar));
    return order[direction > 0 ? Math.max(...places) + 1 : Math.min(...places) - 1];
  };
  const beside = ({ bars: [{ lane, row, item }] }, direction) => {
    const rows = chart.lanes.flatMap((one) => one.rows);
    const distance = (bar) => Math.abs(bar.item.begin - item.begin);
    const next = rows[rows.indexOf(lane.rows[row]) + direction];
    return next?.reduce((near, bar) => (distance(bar) < distance(near) ? bar : near));
  };
  const moves = {
    ArrowRight: (found) => inOrder(found, 1), ArrowLeft: (found) => inOrder(found, -1),
    ArrowDown: (found) => beside(found, 1), ArrowUp: (found) => beside(found, -1),
    Home: () => chart.order[0], End: () => chart.order.at(-1),
  };
  listen(element, {
    focusin: (focus) => {
      const found = barAt(focus.target);
      if (!found) return;
      chart.current = found.bars[0].key;
      if (focus.target.matches(":focus-visible")) card.plan(found.bars, found.element, null);
    },
    focusout: (focus) => focus.relatedTarget && !card.element.contains(focus.relatedTarget) && card.leave(),
    keydown: (key) => {
      const found = barAt(key.target);
      const move = !hasModifier(key) && !key.shiftKey && moves[key.key];
      if (!found || !move) return;
      key.preventDefault();
      key.stopImmediatePropagation();
      const bar = move(found);
      if (!bar) return;
      card.hide();
      chart.focus(bar);
    },
  });
}

/** The visible time: wheel and `+`, `-` zoom; drag and arrow keys pan; `n` goes to now. */
export function connectView(chart, card) {
  const { element, svg } = chart;
  let drag = null;
  const pan = (part) => chart.pan(part * chart.span);

  element.addEventListener("wheel", (wheel) => {
    const isOverNames = wheel.clientX - svg.getBoundingClientRect().left < chart.left;
    if (isOverNames && !wheel.ctrlKey) return;
    wheel.preventDefault();
    card.hide();
    const [x, y] = wheel.shiftKey && !wheel.deltaX ? [wheel.deltaY, 0] : [wheel.deltaX, wheel.deltaY];
    const unit = wheel.deltaMode === 1 ? 24 : 1;
    if (Math.abs(x) > Math.abs(y)) pan((x * unit) / element.clientWidth);
    else chart.zoom(clamp(1.0016 ** (y * unit), 0.5, 2), chart.timeAt(wheel.clientX));
  }, { passive: false });

  const drop = () => {
    drag = null;
    svg.classList.remove("dragged");
  };
  listen(svg, {
    pointerdown: (down) => {
      chart.isDragged = false;
      if (down.button === 0) drag = { x: down.clientX, from: chart.range().from, id: down.pointerId };
    },
    pointermove: (move) => {
      if (move.pointerId !== drag?.id) return;
      const way = move.clientX - drag.x;
      if (!chart.isDragged) {
        if (Math.abs(way) < DRAG_MIN) return;
        svg.setPointerCapture(drag.id);
        svg.classList.add("dragged");
        chart.isDragged = true;
      }
      card.hide();
      chart.show(chart.span, drag.from - way / chart.scale);
    },
    pointerup: drop,
    pointercancel: drop,
  });

  const [zoomIn, zoomOut, toNow] = [() => chart.zoom(0.5), () => chart.zoom(2), () => chart.show(chart.span)];
  const keys = {
    "+": zoomIn, "=": zoomIn, "-": zoomOut, _: zoomOut, n: toNow, 0: toNow,
    ArrowLeft: () => pan(-PAN), ArrowRight: () => pan(PAN), PageUp: () => pan(-0.9), PageDown: () => pan(0.9),
  };
  element.addEventListener("keydown", (key) => {
    const act = !hasModifier(key) && keys[key.key];
    if (!act) return;
    key.preventDefault();
    act();
  });
}

/** Zooms until a group of bars fills the chart. False if they cannot be told apart, or the chart has a fixed time. */
function zoomTo(chart, bars) {
  const { begin } = bars[0].item;
  const end = Math.max(...bars.map(({ item }) => endOf(item, model.now())));
  const span = Math.max(30_000, (end - begin) * 1.3);
  if (chart.isSmall || span > chart.span * 0.8) return false;
  chart.show(span, begin - span * 0.12);
  return true;
}
