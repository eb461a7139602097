// Numbers and elements, as people read them.
const count = value => Math.round(value).toLocaleString("en-US");
const counted = (value, one, many) => `${count(value)} ${value === 1 ? one : many}`;
const fixed = (value, digits) => value.toLocaleString("en-US", {minimumFractionDigits: digits, maximumFractionDigits: digits});
const usText = us => `${fixed(us, us < 10 ? 2 : us < 1000 ? 1 : 0)} µs`;
const share = part => `${fixed(100 * part, part < 0.0995 ? 1 : 0)} %`;

function bytesText(bytes) {
  const [by, unit] = bytes < 1e3 ? [1, "B"] : bytes < 1e6 ? [1e3, "kB"] : bytes < 1e9 ? [1e6, "MB"] : [1e9, "GB"];
  return `${fixed(bytes / by, by === 1 ? 0 : by === 1e9 ? 2 : 1)} ${unit}`;
}

function flopsText(gflop) {
  const [by, unit] = gflop >= 1000 ? [1e3, "TFLOP"] : gflop >= 1 ? [1, "GFLOP"] : [1e-3, "MFLOP"];
  return `${fixed(gflop / by, 2)} ${unit}`;
}

// Of as many numbers as there are: too many for the arguments of a call.
const sum = numbers => numbers.reduce((a, b) => a + b, 0);
const most = numbers => numbers.reduce((a, b) => Math.max(a, b), 0);
const least = numbers => numbers.reduce((a, b) => Math.min(a, b), Infinity);

// "7", or "3 to 7": of [begin, end).
const range = (begin, end) => end - begin <= 1 ? count(begin) : `${count(begin)} to ${count(end - 1)}`;
const several = (one, many, begin, end) => `${end - begin === 1 ? one : many} ${range(begin, end)}`;
const queriesText = (begin, end) => several("query", "queries", begin, end);

// An element with attributes, listeners ("onclick") and children: text is never read as HTML.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
  return made;
}

// Steps of 1, 2 or 5 times a power of ten, so that at most so many fit.
function niceStep(span, most) {
  const least = span / Math.max(most, 1), power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= least * 0.999999);
}
