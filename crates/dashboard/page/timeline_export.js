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
  const { width, height } = chart.svg.viewBox.baseVal;
  const copy = s("svg", { class: "timeline-svg", width, height: height + HEADER, viewBox: `0 0 ${width} ${height + HEADER}`, role: "img" },
    s("title", {}, title), s("desc", {}, subtitle),
    s("rect", { class: "ground", width, height: height + HEADER }),
    s("text", { class: "export-title", x: 8, y: 22 }, title),
    s("text", { class: "export-range", x: 8, y: 42 }, subtitle));
  const content = s("g", { transform: `translate(0 ${HEADER})` });
  content.append(...[...chart.svg.childNodes].map((node) => node.cloneNode(true)));
  copy.append(content);
  const place = h("div", { class: "timeline-off", "aria-hidden": "true" }, copy);
  document.body.append(place);
  inline(copy);
  place.remove();
  for (const link of copy.querySelectorAll("a")) link.replaceWith(groupOf(link));
  for (const element of copy.querySelectorAll(".hit")) element.remove();
  for (const element of [copy, ...copy.querySelectorAll("*")]) {
    for (const name of ["class", "tabindex", "data-key", "aria-label", "href"]) element.removeAttribute(name);
    if (element.id.startsWith("bar-")) element.removeAttribute("id");
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

/** A link of the page as a group with its sentence as the title. */
function groupOf(link) {
  const group = s("g", {}, s("title", {}, link.getAttribute("aria-label")));
  for (const name of STYLES) if (link.hasAttribute(name)) group.setAttribute(name, link.getAttribute(name));
  group.append(...link.childNodes);
  return group;
}

const textOf = (svg) => new XMLSerializer().serializeToString(svg);
const nameOf = (suffix) => `forewarn-timeline-${new Date(model.now()).toISOString().slice(0, 19).replaceAll(":", "")}Z.${suffix}`;

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

export function saveSvg(svg) {
  save(new Blob([textOf(svg)], { type: "image/svg+xml" }), nameOf("svg"));
}

export async function savePng(svg) {
  const address = URL.createObjectURL(new Blob([textOf(svg)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.naturalWidth * SCALE, image.naturalHeight * SCALE];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    if (!blob) throw new Error("the browser cannot draw the picture: make the window smaller, or save it as SVG");
    save(blob, nameOf("png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}
