// Reads the plans, lays out the page.
const charts = []; // the trees, by plan
const times = [];  // likewise

// Where something of a plan was picked elsewhere: the tree goes there, those of the other plan too if it is the same tree.
function shownIn(plan, picked) {
  const isShared = state.areOfOneTree && ["node", "query"].includes(picked.kind);
  charts.forEach(chart => { if (chart.plan === plan || isShared) chart.showPicked(picked); });
  const canvas = charts[plan.index].canvas, {top, bottom} = canvas.getBoundingClientRect();
  if (top < 0 || bottom > innerHeight * 0.6) canvas.scrollIntoView({block: "start"});
}

function legendOf(plan) {
  const key = (kind, text) => element("span", {}, element("i", {class: kind}), text);
  const direct = plan.items.slot.filter(slot => slot < 0).length;
  return element("div", {class: "legend"}, key("node", "a node: its width is its tokens, its height is its queries"),
    direct > 0 ? key("direct", `an item that writes outputs (${count(direct)})`) : null,
    direct < plan.itemCount ? key("partial", `an item that writes partials, to be merged (${count(plan.itemCount - direct)})`) : null,
    plan.hides ? key("hidden", "hidden by the mask") : null, key("match", "found by the search"));
}

function timeParts(plan) {
  const {cost} = plan;
  return stackedBar([["first", "memory", cost.memory], ["outputs", `the busiest ${plan.worker}`, cost.blocks], ["work", "launches and merge", cost.launch]], usText,
    Math.max(...state.plans.map(one => one.cost.us)));
}

function panel(title, plans, partOf, {badge = null, note = null} = {}) {
  return element("section", {class: "panel"},
    element("div", {class: "head"}, element("h2", {}, title), badge ? element("span", {class: "badge"}, badge) : null),
    note ? element("p", {class: "note"}, note) : null,
    element("div", {class: plans.length > 1 ? "pair two" : "pair"}, plans.map(plan => {
      const {tools, nodes} = partOf(plan);
      const head = plan.letter || tools ? element("div", {class: "head"}, plan.letter ? element("span", {class: "plan"}, plan.letter) : null, plan.letter ? element("h3", {title: plan.label}, plan.label) : null, tools ?? null) : null;
      return element("div", {class: "part"}, head, nodes);
    })));
}

function start() {
  const page = JSON.parse(document.getElementById("data").textContent);
  const plans = page.plans.map((data, at) => new Plan(data, at, page.plans.length > 1 ? "AB"[at] : ""));
  state.plans = plans;
  state.areOfOneTree = plans.length > 1 && plans[0].isSameTree(plans[1]);
  document.documentElement.style.setProperty("--plans", plans.length);
  const theme = document.getElementById("theme"), isDark = matchMedia("(prefers-color-scheme: dark)");
  const setTheme = name => {
    document.documentElement.dataset.theme = name;
    theme.textContent = name === "dark" ? "Light" : "Dark";
    state.tell();
  };
  theme.addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  isDark.addEventListener("change", () => setTheme(isDark.matches ? "dark" : "light"));
  setTheme(isDark.matches ? "dark" : "light");

  const [first] = plans;
  document.getElementById("subtitle").textContent = plans.map(plan => `${plan.letter ? `${plan.letter}: ` : ""}${counted(plan.nodeCount - plan.nodes.dead.length, "node", "nodes")}, ${counted(plan.queryCount, "query", "queries")}, ${counted(plan.itemCount, "item", "items")} for each of ${counted(plan.heads, plan.unit, plan.units)}`).join("; ") + ".";
  const treeNotes = plan => {
    const notes = [];
    if (plan.unread > 0) notes.push(plan.unread === 1 ? "1 node that no query sees is left out." : `${count(plan.unread)} nodes that no query sees are left out.`);
    return notes.map(note => element("p", {class: "note"}, note));
  };
  const balanceOf = plan => plan.unitBeginUs ? [] : [element("p", {class: "note"}, "There are too many units to draw: a bar is all that a " + plan.worker + " does.")];
  document.getElementById("main").append(
    element("section", {class: "panel"}, element("div", {class: "head"}, element("h2", {}, plans.length > 1 ? "Two plans" : "The plan")), summaryPart(plans)),
    panel("The tree and who reads it", plans, plan => {
      const chart = new TreeChart(plan);
      charts.push(chart);
      return {tools: chart.tools, nodes: [chart.box, legendOf(plan), treeNotes(plan)]};
    }, {note: "A colour is an item. Click an item, a query's number or a name. + and − zoom, as Ctrl and the wheel do; drag moves; a double click fills the view with a node."}),
    panel(`Work of each ${first.worker} over time`, plans, plan => {
      const chart = new TimeChart(plan);
      times.push(chart);
      return {tools: chart.tools, nodes: [chart.box, element("p", {class: "note"}, `The price model's ${usText(plan.cost.us)} for the layer are the sum of:`), timeParts(plan), balanceOf(plan)]};
    }, {badge: "price model, not a measurement", note: first.isGpu ?
      `A row is a block of the GPU; a multiprocessor runs one or a few at a time. A bar is an item for one ${first.unit}.` : `A row is a thread of the processor. A bar is an item for one ${first.unit}.`}),
    element("div", {class: plans.length > 1 ? "half" : "half single"},
      panel("Where the bytes go", plans, plan => ({nodes: [new BytesPart(plan).box]})),
      panel("Items", plans, plan => ({nodes: [new ItemsPart(plan).box]}))));
  const [a, b] = charts;
  if (state.areOfOneTree) [a.twin, b.twin] = [b, a];
  if (plans.length > 1 && plans[0].blockCount === plans[1].blockCount) [times[0].twin, times[1].twin] = [times[1], times[0]];
  state.listeners.push(() => details.fill());
  search.start();
}
start();
