// All items in a table, in the plan's order or by a column.
class ItemsPart {
  constructor(plan) {
    this.plan = plan;
    this.shown = 15;
    const {items} = plan;
    this.columns = [
      ["item", item => item, item => count(item)],
      ...(plan.phases.filter(phase => phase.count > 0).length > 1 ? [["phase", item => plan.phaseOf[item], item => plan.phases[plan.phaseOf[item]].name]] : []),
      ["queries", item => items.begin[item], item => range(items.begin[item], plan.itemEnd(item))],
      ["rows", item => items.count[item], item => count(items.count[item] * plan.ratio)],
      ["tokens", item => items.tokens[item], item => count(items.tokens[item])],
      ["runs", item => items.run[item + 1] - items.run[item], item => count(items.run[item + 1] - items.run[item])],
      ["µs, by the price model", item => items.us[item], item => fixed(items.us[item], 2)],
      ["writes", item => items.slot[item], item => plan.isPartial(item) ? several("slot", "slots", items.slot[item], items.slot[item] + items.count[item]) : "outputs"],
    ];
    this.sorted = 0;
    this.isFalling = false;
    this.order = [...Array(plan.itemCount).keys()];
    this.table = element("table");
    this.more = element("button", {type: "button", onclick: () => { this.shown += 100; this.fill(); }});
    this.box = element("div", {}, element("div", {class: "scroll"}, this.table), this.more);
    state.listeners.push(() => this.fill());
    this.fill();
  }
  sortBy(column) {
    this.isFalling = this.sorted === column ? !this.isFalling : column > 0;
    this.sorted = column;
    const key = this.columns[column][1], sign = this.isFalling ? -1 : 1;
    this.order.sort((a, b) => sign * (key(a) - key(b)) || a - b);
    this.fill();
  }
  fill() {
    const {plan} = this, items = state.itemsIn(plan);
    // What is picked comes first.
    const rows = (items ? [...this.order.filter(item => items.has(item)), ...this.order.filter(item => !items.has(item))] : this.order).slice(0, this.shown);
    const isNumber = name => name !== "writes" && name !== "phase";
    this.table.replaceChildren(
      element("thead", {}, element("tr", {}, this.columns.map(([name], at) => element("th", {class: isNumber(name) ? "number" : null},
        element("button", {type: "button", title: `Sort by ${name}`, onclick: () => this.sortBy(at)}, name + (this.sorted === at ? this.isFalling ? " ↓" : " ↑" : "")))))),
      element("tbody", {}, rows.map(item => element("tr", {class: items?.has(item) ? "pick picked" : "pick", onclick: () => state.pick(plan.index, "item", item)},
        this.columns.map(([name, , text]) => element("td", {class: isNumber(name) ? "number" : null}, text(item)))))));
    const left = this.order.length - this.shown;
    this.more.hidden = left <= 0;
    this.more.textContent = `show ${count(Math.min(left, 100))} more${left > 100 ? ` of ${count(left)}` : ""}`;
  }
}
