// The visible chart as a file: an SVG that needs nothing else, in light colours, or a PNG drawn from it.

import { h, s } from "./dom.js";
import { model } from "./model.js";

const HEADER = 56;
const SCALE = 2;
const STYLES = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity",
  "font-family", "font-size", "font-weight", "paint-order",
];

/** The chart as an SVG element with presentation attributes instead of classes, below a title and the time range. */
export function standalone(chart, title, subtitle) {
  const [width, height] = [chart.element.clientWidth, chart.height + HEADER];
  const copy = s("svg", { class: "timeline-svg", width, height, viewBox: `0 0 ${width} ${height}`, role: "img" },
    s("title", {}, title), s("desc", {}, subtitle),
    s("rect", { class: "ground", width, height }),
    s("text", { class: "export-title", x: 8, y: 22 }, title),
    s("text", { class: "export-range", x: 8, y: 42 }, subtitle),
    s("g", { transform: `translate(0 ${HEADER})` }, [...chart.svg.childNodes].map((node) => node.cloneNode(true))));
  const place = h("div", { class: "timeline-off", "aria-hidden": "true" }, copy);
  document.body.append(place);
  inline(copy);
  place.remove();
  for (const element of copy.querySelectorAll(".hit")) element.remove();
  for (const link of copy.querySelectorAll("a")) {
    link.prepend(s("title", {}, link.getAttribute("aria-label")));
    link.removeAttribute("id");
  }
  for (const element of [copy, ...copy.querySelectorAll("*")]) {
    for (const name of ["class", "tabindex", "data-key", "aria-label", "href"]) element.removeAttribute(name);
  }
  return copy;
}

/** Writes the computed style of each element into its attributes. The place of the copy has the light colours. */
function inline(copy) {
  for (const element of [copy, ...copy.querySelectorAll("*")]) {
    if (["title", "desc", "defs", "clipPath", "pattern"].includes(element.localName)) continue;
    const computed = getComputedStyle(element);
    const inherited = element === copy ? null : getComputedStyle(element.parentElement);
    for (const name of STYLES) {
      const value = computed.getPropertyValue(name);
      const isSame = name === "opacity" ? value === "1" : inherited && inherited.getPropertyValue(name) === value;
      if (value && !isSame) element.setAttribute(name, value.replaceAll('"', "'"));
    }
  }
}

/** The address of a file, which is valid for a minute. */
function addressOf(blob) {
  const address = URL.createObjectURL(blob);
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  return address;
}

const addressOfSvg = (svg) => addressOf(new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" }));

function save(address, suffix) {
  const time = new Date(model.now()).toISOString().slice(0, 19).replaceAll(":", "");
  h("a", { href: address, download: `forewarn-timeline-${time}Z.${suffix}` }).click();
}

export const saveSvg = (svg) => save(addressOfSvg(svg), "svg");

export async function savePng(svg) {
  const image = h("img", { src: addressOfSvg(svg) });
  await image.decode();
  const canvas = h("canvas", { width: image.naturalWidth * SCALE, height: image.naturalHeight * SCALE });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  if (!blob) throw new Error("the browser cannot draw the picture: make the window smaller, or save it as SVG");
  save(addressOf(blob), "png");
}
