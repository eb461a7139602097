// The tree: a row is a query, a box is a node, right of its parent, as wide as its tokens and as tall as its readers. Colours are items.
class TreeChart extends Chart {
  constructor(plan) {
    super(plan, `The tree of the plan: ${counted(plan.nodeCount, "node", "nodes")}, ${counted(plan.queryCount, "query", "queries")}`, {left: Math.max(46, 12 + 7 * count(plan.queryCount).length), top: 22, right: 4, bottom: 4});
    const choose = (name, options, set) => {
      const box = element("select", {onchange: () => set(box.value)}, Object.entries(options).map(([value, text]) => element("option", {value}, text)));
      return element("label", {}, name, box);
    };
    this.tools.prepend(
      choose("widths", {levels: "by level", tokens: "true to tokens"}, value => { this.isTrue = value === "tokens"; this.tones = null; this.layOut(); this.fit(); }),
      choose("colours", {items: "items", readers: "readers", phases: "phases"}, value => { this.colours = value; this.redraw(); }));
  }

  // Widths by level: as square roots, so that a prompt of thousands of tokens leaves room for its branches.
  layOut() {
    const {nodes, drawn} = this.plan, most = [];
    for (const node of drawn) most[nodes.depth[node]] = Math.max(most[nodes.depth[node]] ?? 0, nodes.tokens[node]);
    const weights = most.map(tokens => Math.sqrt(tokens) + 2), sum = weights.reduce((a, b) => a + b, 0);
    const gap = Math.min(3, 250 / Math.max(most.length, 1)), space = 1000 - gap * most.length;
    this.columns = [];
    let x = 0;
    weights.forEach((weight, depth) => {
      this.columns[depth] = {x, width: space * weight / sum, most: most[depth]};
      x += this.columns[depth].width + gap;
    });
    this.deepest = drawn.reduce((end, node) => Math.max(end, nodes.position[node] + nodes.tokens[node]), 1);
  }
  size() {
    if (!this.columns) this.layOut();
    return {width: this.isTrue ? this.deepest : 1000, height: Math.max(this.plan.queryCount, 1)};
  }
  wantedHeight(width) {
    return Math.min(Math.max(this.plan.queryCount * 26, 70), width < 600 ? 340 : 460) + this.margins.top + this.margins.bottom;
  }
  // Of a token of a node, in the world.
  x(node, token) {
    if (this.isTrue) return this.plan.nodes.position[node] + token;
    const column = this.columns[this.plan.nodes.depth[node]];
    return column.most === 0 ? column.x : column.x + column.width * token / column.most;
  }
  tokenAt(node, x) {
    const tokens = this.plan.nodes.tokens[node], begin = this.x(node, 0), end = this.x(node, tokens);
    return Math.min(Math.max(Math.floor((x - begin) / (end - begin) * tokens), 0), tokens - 1);
  }
  boxOf(node) {
    const {readersBegin, readersEnd, nodes} = this.plan;
    const x = this.x(node, 0), y = readersBegin[node];
    return {x, y, width: this.x(node, nodes.tokens[node]) - x, height: readersEnd[node] - y};
  }
  isSeen({x, y, width, height}) {
    const view = this.view;
    return x <= view.x + view.width && x + width >= view.x && y <= view.y + view.height && y + height >= view.y;
  }

  paint(draw) {
    const plan = this.plan;
    const seen = plan.drawn.filter(node => this.isSeen(this.boxOf(node)));
    this.items = state.itemsIn(plan);
    this.picked = state.pickedIn(plan);
    this.rowNumbers(draw, plan.queryCount);
    this.text(draw, "query", 2, 13, {colour: "faint"});
    this.paintHead(draw);
    this.makePatterns(draw);
    this.taken = [];
    this.clipped(draw, () => {
      for (const node of seen) this.paintUnread(draw, node);
      for (const node of seen) for (const run of plan.runsOfNode[node]) this.paintRun(draw, run);
      for (const part of plan.hidden) this.paintHidden(draw, part);
      for (const node of seen) this.paintNode(draw, node);
      if (this.picked?.kind === "query") this.paintRow(draw, this.picked.id);
      for (const node of seen) this.nameNode(draw, node);
      for (const node of seen) for (const run of plan.runsOfNode[node]) this.nameRun(draw, run);
    });
  }

  paintHead(draw) {
    if (this.isTrue) {
      const step = Math.max(1, niceStep(this.view.width, this.plot.width / 80));
      for (let token = Math.ceil(this.view.x / step) * step; token <= this.view.x + this.view.width; token += step) {
        const text = token === 0 ? "token 0" : count(token), half = draw.measureText(text).width / 2;
        const x = Math.min(Math.max(this.toX(token), this.plot.left + half), this.plot.left + this.plot.width - half);
        this.text(draw, text, x, 13, {colour: "faint", align: "center"});
      }
      return;
    }
    let free = this.plot.left;
    this.columns.forEach((column, depth) => {
      const x = this.toX(column.x), end = this.toX(column.x + column.width);
      if (end < this.plot.left || x > this.plot.left + this.plot.width) return;
      const from = Math.max(x, this.plot.left), room = Math.min(end, this.plot.left + this.plot.width) - from;
      const text = [`level ${depth}, to ${counted(column.most, "token", "tokens")}`, `level ${depth}`, `${depth}`].find(one => draw.measureText(one).width <= room - 4);
      if (!text || from < free) return;
      this.text(draw, text, from, 13, {colour: "faint"});
      free = from + draw.measureText(text).width + 6;
    });
  }

  makePatterns(draw) {
    const pattern = (paint, size) => {
      const tile = element("canvas", {width: size, height: size}), on = tile.getContext("2d");
      paint(on, size);
      return draw.createPattern(tile, "repeat");
    };
    const stroke = (colour, isFalling, width) => (on, size) => {
      on.strokeStyle = colour;
      on.lineWidth = width;
      for (const shift of [-size, 0, size]) {
        on.beginPath();
        on.moveTo(shift, isFalling ? 0 : size);
        on.lineTo(shift + size, isFalling ? size : 0);
        on.stroke();
      }
    };
    const theme = document.documentElement.dataset.theme;
    if (this.patterned === theme) return;
    this.patterned = theme;
    this.partial = pattern(stroke(this.ink("hatch"), false, 2), 7);
    this.unread = pattern(stroke(this.ink("line"), true, 1.5), 6);
  }

  paintUnread(draw, node) {
    if (!this.plan.hides) return;
    const {x, y, width, height} = this.boxOf(node);
    draw.fillStyle = this.unread;
    draw.fillRect(this.toX(x), this.toY(y), this.toX(x + width) - this.toX(x), this.toY(y + height) - this.toY(y));
  }
  // What the mask hides of a run from some of its queries.
  paintHidden(draw, [node, from, to, begin, end]) {
    const x = this.toX(this.x(node, from)), y = this.toY(begin);
    const width = this.toX(this.x(node, to)) - x, height = this.toY(end) - y;
    draw.fillStyle = this.ink("card");
    draw.fillRect(x, y, width, height);
    draw.fillStyle = this.unread;
    draw.fillRect(x, y, width, height);
  }

  trace(draw, run) {
    const {runs} = this.plan, node = runs.node[run], from = runs.from[run], to = runs.to[run];
    const x = this.toX(this.x(node, runs.begin[run])), top = this.toY(from), bottom = this.toY(to);
    const end = tokens => this.toX(this.x(node, runs.begin[run] + tokens));
    draw.beginPath();
    if (!runs.slope[run]) {
      const width = Math.max(end(runs.tokens[run]) - x, 0.8), height = Math.max(bottom - top, 0.6);
      draw.rect(x, top, width, height);
      return {width, height};
    }
    const tokens = Math.min(runs.tokens[run], to - from), right = end(tokens);
    draw.moveTo(x, top);
    draw.lineTo(right, this.toY(from + tokens));
    draw.lineTo(right, bottom);
    draw.lineTo(x, bottom);
    draw.closePath();
    return {width: right - x, height: bottom - top};
  }
  paintRun(draw, run) {
    const {plan, picked} = this, item = plan.itemOfRun[run];
    const isFaint = picked !== null && (picked.kind === "node" ? plan.runs.node[run] !== picked.id : picked.kind === "query" || !this.items.has(item));
    const {width, height} = this.trace(draw, run);
    draw.fillStyle = this.colourOf(run, item, isFaint);
    draw.fill();
    if (width < 3 || height < 3) return;
    if (plan.isPartial(item)) {
      draw.fillStyle = this.partial;
      draw.fill();
    }
    draw.globalAlpha = isFaint ? 0.25 : 0.8;
    draw.lineWidth = picked?.kind === "item" && !isFaint ? 2 : 0.8;
    draw.strokeStyle = picked?.kind === "item" && !isFaint ? this.ink("ink") : this.rimOf(item);
    draw.stroke();
    draw.globalAlpha = 1;
  }
  colourOf(run, item, isFaint) {
    if (this.colours === "phases") return `hsl(${(205 + 97 * this.plan.phaseOf[item]) % 360} ${this.ink("sat")} ${this.ink("light-b")} / ${isFaint ? 0.16 : 1})`;
    if (this.colours === "readers") {
      const readers = this.plan.runs.to[run] - this.plan.runs.from[run], most = Math.max(this.plan.queryCount, 2);
      return `hsl(210 75% 50% / ${(0.12 + 0.78 * Math.log(readers) / Math.log(most)) * (isFaint ? 0.25 : 1)})`;
    }
    return this.fillOf(item, isFaint);
  }
  // The tokens that a query reads, in full colour.
  paintRow(draw, query) {
    const top = this.toY(query), height = Math.max(this.toY(query + 1) - top, 2);
    for (const item of this.items)
      for (let run = this.plan.items.run[item]; run < this.plan.items.run[item + 1]; ++run) {
        const {runs} = this.plan, node = runs.node[run];
        if (query < runs.from[run] || query >= runs.to[run]) continue;
        const tokens = runs.slope[run] ? Math.min(runs.tokens[run], query - runs.from[run] + 1) : runs.tokens[run];
        const x = this.toX(this.x(node, runs.begin[run])), end = this.toX(this.x(node, runs.begin[run] + tokens));
        draw.fillStyle = this.colourOf(run, item, false);
        draw.fillRect(x, top, Math.max(end - x, 1), height);
        draw.strokeStyle = this.ink("ink");
        draw.lineWidth = 1;
        if (height > 4) draw.strokeRect(x, top, Math.max(end - x, 1), height);
      }
  }

  paintNode(draw, node) {
    const box = this.boxOf(node), isPicked = this.picked?.kind === "node" && this.picked.id === node;
    const isMatch = state.matches[this.plan.index]?.has(node);
    const x = this.toX(box.x), y = this.toY(box.y), width = this.toX(box.x + box.width) - x, height = this.toY(box.y + box.height) - y;
    if ((width < 3 || height < 3) && !isMatch && !isPicked) return;
    draw.strokeStyle = this.ink(isMatch ? "bad" : isPicked ? "ink" : "edge");
    draw.lineWidth = isMatch || isPicked ? 2.5 : height < 8 ? 0.4 : 1;
    draw.strokeRect(x, y, Math.max(width, 2), Math.max(height, 2));
  }

  // For a label, where there is no other one.
  takeRoom(box) {
    const meets = other => box.x < other.x + other.width && other.x < box.x + box.width && box.y < other.y + other.height && other.y < box.y + box.height;
    if (this.taken.some(meets)) return false;
    this.taken.push(box);
    return true;
  }
  // The part of a box that is on the canvas.
  shownPart({x, y, width, height}) {
    const {left, top, width: plotWidth, height: plotHeight} = this.plot;
    const begin = Math.max(this.toX(x), left), up = Math.max(this.toY(y), top);
    return {x: begin, y: up, width: Math.min(this.toX(x + width), left + plotWidth) - begin, height: Math.min(this.toY(y + height), top + plotHeight) - up};
  }
  // A name's beginning that fits; empty: hardly any of it does.
  cutTo(draw, name, width) {
    if (width < 45) return "";
    let length = Math.min(name.length, 80);
    while (length > 4 && draw.measureText(`${name.slice(0, length)}…`).width > width) --length;
    return length > 4 ? `${name.slice(0, length)}…` : "";
  }
  nameNode(draw, node) {
    const tokens = this.plan.nodes.tokens[node], name = this.plan.nodeName(node), box = this.shownPart(this.boxOf(node));
    if (box.width < 13 || box.height < 13) return;
    draw.font = "600 12px system-ui, sans-serif";
    const texts = [`${name}: ${counted(tokens, "token", "tokens")}`, `${name}: ${count(tokens)}`, name];
    const fits = room => texts.find(text => draw.measureText(text).width + 8 <= room);
    const flat = fits(box.width) ?? this.cutTo(draw, name, box.width - 8), length = draw.measureText(flat).width;
    const base = box.y + Math.min(14, box.height / 2 + 4.5);
    if (flat && this.takeRoom({x: box.x + 4, y: base - 11, width: length, height: 13})) return this.text(draw, flat, box.x + 4, base, {weight: "600", halo: true});
    const upright = flat ? undefined : fits(box.height);
    if (upright && this.takeRoom({x: box.x + box.width / 2 - 7, y: box.y + box.height - draw.measureText(upright).width - 4, width: 13, height: draw.measureText(upright).width}))
      this.text(draw, upright, box.x + box.width / 2 + 4.5, box.y + box.height - 4, {weight: "600", halo: true, isUp: true});
  }
  nameRun(draw, run) {
    const {runs} = this.plan, node = runs.node[run], item = this.plan.itemOfRun[run];
    if (runs.slope[run]) return;
    const x = this.x(node, runs.begin[run]), y = runs.from[run];
    const box = this.shownPart({x, y, width: this.x(node, runs.begin[run] + runs.tokens[run]) - x, height: runs.to[run] - y});
    if (box.height < 16 || box.width < 14) return;
    for (const text of [`item ${item}`, `${item}`]) {
      const length = draw.measureText(text).width;
      if (length + 10 > box.width) continue;
      if (this.takeRoom({x: box.x + box.width - length - 5, y: box.y + (box.height < 34 ? box.height / 2 - 6.5 : box.height - 16), width: length, height: 13}))
        this.text(draw, text, box.x + box.width - 5, box.y + box.height - (box.height < 34 ? box.height / 2 - 4.5 : 5), {align: "right", halo: true});
      return;
    }
  }

  nodeAt(x, y) {
    const within = node => {
      const box = this.boxOf(node);
      return x >= box.x && x <= box.x + Math.max(box.width, this.view.width / this.plot.width) && y >= box.y && y < box.y + box.height;
    };
    return this.plan.drawn.findLast(node => this.plan.nodes.tokens[node] > 0 && within(node));
  }
  at(px, py) {
    const {plan} = this, query = Math.floor(this.fromY(py));
    if (px < this.plot.left && py >= this.plot.top && query >= 0 && query < plan.queryCount) {
      const items = plan.itemsOfQuery(query);
      return {lines: [plan.queryName(query), `at the end of ${plan.nodeName(plan.queries.node[query])}, position ${count(plan.queries.position[query])}`,
        `reads ${counted(items.length, "item", "items")}; click for all`], pick: ["query", query]};
    }
    if (!this.isInPlot(px, py)) return null;
    const x = this.fromX(px), node = this.nodeAt(x, this.fromY(py));
    if (node === undefined) return null;
    const box = this.boxOf(node), show = [box.x, box.y, box.width, box.height];
    const token = this.tokenAt(node, x), run = plan.runAt(node, token, query);
    const place = `token ${count(token)} of ${count(plan.nodes.tokens[node])} (position ${count(plan.nodes.position[node] + token)})`;
    const head = [plan.nodeName(node), place];
    if (run === undefined) return {lines: [...head, `${plan.queryName(query)} does not read it`], pick: ["node", node], show};
    const item = plan.itemOfRun[run], [from, to] = plan.readers(run, token);
    const isNode = this.picked?.kind === "item" && this.picked.id === item;
    return {lines: [...head, `read by ${queriesText(from, to)} as item ${count(item)}`,
      `item ${count(item)}: ${counted(plan.items.tokens[item], "token", "tokens")}, ${counted(plan.items.count[item], "query", "queries")}, ${plan.writes(item)}`,
      `${usText(plan.items.us[item])} for each ${plan.unit} by the price model`, isNode ? "click again for the node" : "click for the item"],
      pick: isNode ? ["node", node] : ["item", item], show};
  }
  // A node or the runs of an item, as large as they fit.
  showPicked({kind, id}) {
    const boxes = kind === "node" ? [this.boxOf(id)] : kind === "query" ? [{x: 0, y: id, width: this.size().width, height: 1}] :
      [...(state.itemsIn(this.plan) ?? [])].flatMap(item => {
        const {items, runs} = this.plan, found = [];
        for (let run = items.run[item]; run < items.run[item + 1]; ++run) {
          const x = this.x(runs.node[run], runs.begin[run]);
          found.push({x, y: runs.from[run], width: this.x(runs.node[run], runs.begin[run] + runs.tokens[run]) - x, height: runs.to[run] - runs.from[run]});
        }
        return found;
      });
    if (boxes.length === 0 || kind === "block") return;
    const x = least(boxes.map(box => box.x)), y = least(boxes.map(box => box.y));
    const width = most(boxes.map(box => box.x + box.width)) - x, height = most(boxes.map(box => box.y + box.height)) - y;
    this.show(x, y, width, height, 0.6);
  }
}
