// Pointer, wheel and keys on the chart of the timeline.

import { endOf } from "./timeline_data.js";
import { model } from "./model.js";

const DRAG_MIN = 5;
const PAN = 0.2;

/** Bars: hover and focus show a card, a click opens the event, arrow keys go from bar to bar. */
export function connectBars(chart, card, { zoomTo = () => false, moved = () => {} } = {}) {
  const { element, svg } = chart;
  let isTouch = false;
  const barAt = (target) => {
    const key = target.closest?.(".bar")?.dataset.key;
    return key === undefined ? null : chart.byKey.get(key) ?? null;
  };

  svg.addEventListener("pointerdown", (down) => (isTouch = down.pointerType === "touch"));
  svg.addEventListener("dragstart", (start) => start.preventDefault());
  svg.addEventListener("click", (click) => {
    const found = barAt(click.target);
    if (!found) return;
    if (chart.isDragged) return click.preventDefault();
    chart.current = found.bars[0].key;
    if (isTouch && !card.isOf(found.bars)) {
      click.preventDefault();
      card.show(found.bars, found.element, click.clientX);
    } else if (found.bars.length > 1) {
      click.preventDefault();
      if (!zoomTo(found.bars)) card.show(found.bars, found.element, null);
    }
  });

  svg.addEventListener("pointerover", (over) => {
    if (over.pointerType === "touch" || over.buttons) return;
    const found = barAt(over.target);
    if (found) card.plan(found.bars, found.element, over.clientX);
    else card.leave();
  });
  svg.addEventListener("pointerleave", () => card.leave());
  element.addEventListener("focusin", (focus) => {
    const found = barAt(focus.target);
    if (!found) return;
    chart.current = found.bars[0].key;
    if (focus.target.matches(":focus-visible")) card.plan(found.bars, found.element, null);
  });
  element.addEventListener("focusout", (focus) => focus.relatedTarget && !card.element.contains(focus.relatedTarget) && card.leave());

  const inOrder = (found, direction) => {
    const keys = new Set(found.bars.map(({ key }) => key));
    const places = chart.order.flatMap(({ key }, place) => (keys.has(key) ? [place] : []));
    return chart.order[direction > 0 ? places.at(-1) + 1 : places[0] - 1];
  };
  const beside = (found, direction) => {
    const rows = chart.lanes.flatMap((lane) => lane.rows);
    const { lane, row, item } = found.bars[0];
    const next = rows[rows.indexOf(lane.rows[row]) + direction];
    return next?.reduce((near, bar) => (Math.abs(bar.item.begin - item.begin) < Math.abs(near.item.begin - item.begin) ? bar : near));
  };
  const moves = {
    ArrowRight: (found) => inOrder(found, 1), ArrowLeft: (found) => inOrder(found, -1),
    ArrowDown: (found) => beside(found, 1), ArrowUp: (found) => beside(found, -1),
    Home: () => chart.order[0], End: () => chart.order.at(-1),
  };
  element.addEventListener("keydown", (key) => {
    const found = barAt(key.target);
    const move = !key.ctrlKey && !key.metaKey && !key.altKey && !key.shiftKey && moves[key.key];
    if (!found || !move) return;
    key.preventDefault();
    key.stopImmediatePropagation();
    const bar = move(found);
    if (!bar) return;
    card.hide();
    chart.focus(bar);
    moved();
  });
}

/** The visible time: wheel and `+`, `-` zoom; drag and arrow keys pan; `n` goes to now. `changed()` is called after each. */
export function connectView(chart, card, changed) {
  const { element, svg } = chart;
  let drag = null;
  const zoom = (factor, anchor) => (chart.zoom(factor, anchor), changed());
  const pan = (part) => (chart.pan(part * chart.span), changed());
  const toNow = () => (chart.show(chart.span), changed());

  element.addEventListener("wheel", (wheel) => {
    const isOverNames = wheel.clientX - svg.getBoundingClientRect().left < chart.left;
    if (isOverNames && !wheel.ctrlKey) return;
    wheel.preventDefault();
    card.hide();
    const [x, y] = wheel.shiftKey && !wheel.deltaX ? [wheel.deltaY, 0] : [wheel.deltaX, wheel.deltaY];
    const unit = wheel.deltaMode === 1 ? 24 : 1;
    if (Math.abs(x) > Math.abs(y)) pan((x * unit) / element.clientWidth);
    else zoom(Math.min(2, Math.max(0.5, 1.0016 ** (y * unit))), chart.timeAt(wheel.clientX));
  }, { passive: false });

  svg.addEventListener("pointerdown", (down) => {
    chart.isDragged = false;
    if (down.button === 0) drag = { x: down.clientX, from: chart.range().from, id: down.pointerId };
  });
  svg.addEventListener("pointermove", (move) => {
    if (!drag || move.pointerId !== drag.id) return;
    const way = move.clientX - drag.x;
    if (!chart.isDragged && Math.abs(way) < DRAG_MIN) return;
    if (!chart.isDragged) svg.setPointerCapture(drag.id);
    chart.isDragged = true;
    svg.classList.add("dragged");
    card.hide();
    chart.show(chart.span, drag.from - way / chart.scale);
  });
  const drop = () => {
    if (drag && chart.isDragged) changed();
    drag = null;
    svg.classList.remove("dragged");
  };
  svg.addEventListener("pointerup", drop);
  svg.addEventListener("pointercancel", drop);

  const keys = {
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), _: () => zoom(2), n: toNow, 0: toNow,
    ArrowLeft: () => pan(-PAN), ArrowRight: () => pan(PAN), PageUp: () => pan(-0.9), PageDown: () => pan(0.9),
  };
  element.addEventListener("keydown", (key) => {
    const act = !key.ctrlKey && !key.metaKey && !key.altKey && keys[key.key];
    if (!act) return;
    key.preventDefault();
    act();
  });
}

/** Zooms until a group of bars fills the chart. False if they cannot be told apart. */
export function zoomTo(chart, bars) {
  const now = model.now();
  const begin = bars[0].item.begin;
  const end = Math.max(...bars.map(({ item }) => endOf(item, now)));
  const span = Math.max(30_000, (end - begin) * 1.3);
  if (span > chart.span * 0.8) return false;
  chart.show(span, begin - span * 0.12);
  return true;
}
