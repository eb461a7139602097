// What is picked, in words, with links to what it has to do with.
const details = {
  kMostLinks: 24,

  link(plan, kind, id, text) {
    return element("button", {type: "button", class: "link", onclick: () => { state.pick(plan.index, kind, id); shownIn(plan, {kind, id}); }}, text);
  },
  links(plan, kind, ids, textOf) {
    if (ids.length === 0) return ["none"];
    const made = ids.slice(0, this.kMostLinks).map(id => this.link(plan, kind, id, textOf(id)));
    return ids.length > this.kMostLinks ? [...made, `and ${count(ids.length - this.kMostLinks)} more`] : made;
  },
  // A run as "tokens 0 to 511 of NAME".
  runText(plan, run) {
    const {runs, nodes} = plan, node = runs.node[run], begin = runs.begin[run], end = begin + runs.tokens[run];
    const tokens = begin === 0 && end === nodes.tokens[node] ? `all ${counted(end, "token", "tokens")}` : several("token", "tokens", begin, end);
    return `${tokens} of ${plan.nodeName(node)}`;
  },

  node(plan, node) {
    const {nodes, bytes, runs} = plan, path = plan.path(node), found = plan.runsOfNode[node];
    const shown = path.length > 9 ? [...path.slice(0, 3), -1, ...path.slice(-5)] : path;
    const readers = element("span", {}, found.slice(0, this.kMostLinks).map(run => element("div", {},
      `${several("token", "tokens", runs.begin[run], runs.begin[run] + runs.tokens[run])}: ${queriesText(runs.from[run], runs.to[run])}${runs.slope[run] ? ", each token from its own query on" : ""}, as `,
      this.link(plan, "item", plan.itemOfRun[run], `item ${count(plan.itemOfRun[run])}`))), found.length > this.kMostLinks ? `and ${count(found.length - this.kMostLinks)} more` : "");
    return [plan.nodeName(node), [
      ["path", shown.flatMap((at, place) => [place > 0 ? " › " : "", at < 0 ? "…" : at === node ? plan.nodeName(at) : this.link(plan, "node", at, plan.nodeName(at))])],
      ["tokens", `${count(nodes.tokens[node])}, positions ${range(nodes.position[node], nodes.position[node] + nodes.tokens[node])}`],
      ["queries below", plan.readersEnd[node] > 0 ? `${count(plan.readersEnd[node] - plan.readersBegin[node])}: ${range(plan.readersBegin[node], plan.readersEnd[node])}` : "none"],
      ["K and V read", `${bytesText(bytes.first[node])} once, ${bytesText(bytes.again[node])} again`],
      ["who reads what", readers],
    ]];
  },
  item(plan, item) {
    const {items, runs} = plan, all = [...Array(items.run[item + 1] - items.run[item]).keys()].map(at => items.run[item] + at);
    const units = plan.unitsOfItem(item), blocks = [...new Set(units.map(unit => unit.block))];
    return [`Item ${count(item)}${plan.phases.length > 1 ? `, phase ${plan.phases[plan.phaseOf[item]].name}` : ""}`, [
      ["queries", `${range(items.begin[item], plan.itemEnd(item))}: ${counted(items.count[item] * plan.ratio, "row", "rows")} for each ${plan.unit}`],
      ["reads", all.slice(0, this.kMostLinks).flatMap(run => [this.link(plan, "node", runs.node[run], this.runText(plan, run)), runs.to[run] - runs.from[run] < items.count[item] ? `(${queriesText(runs.from[run], runs.to[run])}) ` : ""])
        .concat(all.length > this.kMostLinks ? [`and ${counted(all.length - this.kMostLinks, "more run", "more runs")}`] : [])],
      ["tokens", count(items.tokens[item]) + (items.dealt[item] > 0 ? `, ${counted(items.dealt[item], "tile", "tiles")} of them dealt to warps` : "")],
      ["writes", plan.isPartial(item) ? `partials in ${several("slot", "slots", items.slot[item], items.slot[item] + items.count[item])}, merged with those of other items` : "outputs: its rows are complete"],
      ["price model", `${usText(items.us[item])} for each ${plan.unit}`],
      [plan.worker + "s", this.links(plan, "block", blocks, block => count(block))],
    ]];
  },
  query(plan, query) {
    const node = plan.queries.node[query], at = plan.merge.query.indexOf(query);
    const slots = at < 0 ? [] : plan.merge.slot.slice(plan.merge.begin[at], plan.merge.begin[at + 1]);
    return [plan.queryName(query)[0].toUpperCase() + plan.queryName(query).slice(1), [
      ["at the end of", [this.link(plan, "node", node, plan.nodeName(node)), `position ${count(plan.queries.position[query])}`]],
      ["reads", this.links(plan, "item", plan.itemsOfQuery(query), item => `item ${count(item)}`)],
      ["result", slots.length > 0 ? `merged of ${counted(slots.length, "partial", "partials")}, ${slots.length > 1 ? "slots" : "slot"} ${slots.slice(0, 40).join(", ")}${slots.length > 40 ? ", …" : ""}` : at >= 0 ? "0: it reads no token" : "written by its item"],
    ]];
  },
  block(plan, block) {
    const mean = plan.loads.reduce((sum, us) => sum + us, 0) / plan.blockCount;
    return [`${plan.worker[0].toUpperCase()}${plan.worker.slice(1)} ${count(block)}`, [
      ["busy", `${usText(plan.loads[block])} by the price model; the mean is ${usText(mean)}`],
      ["computes", this.links(plan, "item", plan.itemsOfBlock(block), item => `item ${count(item)}`)],
    ]];
  },

  fill() {
    const box = document.getElementById("details"), picked = state.picked;
    box.hidden = !picked;
    if (!picked) return;
    const plan = state.plans[picked.plan], [title, rows] = this[picked.kind](plan, picked.id);
    box.replaceChildren(
      element("div", {class: "head"}, plan.letter ? element("span", {class: "plan"}, plan.letter) : null, element("h2", {}, title),
        element("button", {type: "button", "aria-label": "Close", onclick: () => state.clear()}, "×")),
      element("dl", {}, rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])));
  },
};
