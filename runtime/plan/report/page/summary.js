// What a plan costs, in figures: of one plan a list, of two a table with their ratio.
// [name, text, number to compare, in small]; less is better where there is a number.
function figuresOf(plan) {
  const {parts, total} = byteParts(plan), {cost, items} = plan;
  const direct = items.slot.filter(slot => slot < 0).length, read = sum(items.tokens);
  const mean = sum(plan.loads) / Math.max(plan.blockCount, 1), idle = plan.loads.filter(us => us === 0).length;
  return [
    ["time by the price model", usText(cost.us), cost.us, "one layer; not a measurement"],
    ...plan.facts.map(([name, text, note]) => [name, text, null, note ?? ""]),
    ["bytes moved", bytesText(total), total, "one layer, all heads"],
    ["K and V read again", bytesText(parts.again), parts.again, `${share(total > 0 ? parts.again / total : 0)} of all bytes`],
    ["partials", bytesText(parts.partials), parts.partials, `${counted(plan.slots, "slot", "slots")}, ${counted(plan.merge.query.length, "merged query", "merged queries")}`],
    ["items", count(plan.itemCount), plan.itemCount, `${count(direct)} write outputs, ${count(plan.itemCount - direct)} partials`],
    ["tokens that items read", count(read), read, `${count(plan.read)} different ones`],
    ["busiest " + plan.worker, usText(most(plan.loads)), most(plan.loads), `${fixed(mean > 0 ? most(plan.loads) / mean : 1, 2)} times the mean of ${count(plan.blockCount)}` + (idle > 0 ? `; ${count(idle)} idle` : "")],
    ["useful products", cost.padded > 0 ? share(cost.useful / cost.padded) : "none", null, `${flopsText(cost.useful)} of ${flopsText(cost.padded)}; the rest is padding`],
    ["partition", plan.partition, null, `chunks of ${count(plan.chunk)} tokens at most`],
  ];
}

function summaryPart(plans) {
  const words = plan => [["attention", plan.variant], ["machine", plan.machine], ["tree", plan.tree], ["config", plan.why]].filter(([, text]) => text);
  if (plans.length === 1) {
    const [plan] = plans;
    return element("dl", {class: "facts"},
      figuresOf(plan).map(([name, text, , note]) => element("div", {}, element("dt", {}, name), element("dd", {}, text, element("small", {}, note)))),
      words(plan).map(([name, text]) => element("div", {class: "words"}, element("dt", {}, name), element("dd", {}, text))));
  }
  const figures = plans.map(figuresOf), names = [...new Set(figures.flatMap(rows => rows.map(([name]) => name)))];
  const ratio = (a, b) => {
    if (typeof a !== "number" || typeof b !== "number") return element("td", {class: "number"}, "");
    if (a === b) return element("td", {class: "number"}, "same");
    const tone = a > 0 && Math.abs(b / a - 1) < 0.005 ? "" : b < a ? "less" : "more";
    return element("td", {class: `number ${tone}`}, a > 0 ? `${fixed(b / a, 2)} ×` : "");
  };
  const cell = row => element("td", {}, row ? row[1] : "", row?.[3] ? element("small", {}, row[3]) : null);
  const wordRows = plans.map(words), wordNames = [...new Set(wordRows.flatMap(rows => rows.map(([name]) => name)))];
  return element("div", {class: "scroll"}, element("table", {class: "compare"},
    element("thead", {}, element("tr", {}, element("th", {}, ""), plans.map(plan => element("th", {}, element("span", {class: "plan"}, plan.letter), ` ${plan.label}`)), element("th", {class: "number"}, "B ÷ A"))),
    element("tbody", {}, names.map(name => {
      const rows = figures.map(all => all.find(([one]) => one === name));
      return element("tr", {}, element("td", {}, name), rows.map(cell), ratio(rows[0]?.[2], rows[1]?.[2]));
    }), wordNames.map(name => {
      const texts = wordRows.map(all => all.find(([one]) => one === name)?.[1] ?? "");
      return texts[0] === texts[1] ? element("tr", {}, element("td", {}, name), element("td", {colspan: 3}, texts[0])) :
        element("tr", {}, element("td", {}, name), texts.map(text => element("td", {}, text)), element("td", {}, ""));
    }))));
}
