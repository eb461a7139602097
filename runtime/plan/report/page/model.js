// A plan with what views ask of it. Queries are named by their place in the plan's order.
class Plan {
  constructor(data, index, letter) {
    Object.assign(this, data);
    this.index = index;
    this.letter = letter; // "A", "B"; empty: the page has one plan
    this.nodeCount = this.nodes.parent.length;
    this.queryCount = this.queries.node.length;
    this.itemCount = this.items.tokens.length;
    this.findReaders();
    this.findRuns();
    this.findTimes();
    this.chooseColours();
  }

  nodeName(node) { return this.nodes.names[node] ?? `n${node}`; }
  queryName(query) {
    const caller = this.queries.caller[query];
    return caller === query ? `query ${query}` : `query ${query} (the caller's ${caller})`;
  }

  // Of each node, the interval of the queries below it.
  findReaders() {
    const {parent, depth} = this.nodes;
    this.readersBegin = new Int32Array(this.nodeCount).fill(this.queryCount);
    this.readersEnd = new Int32Array(this.nodeCount);
    const add = (node, begin, end) => {
      this.readersBegin[node] = Math.min(this.readersBegin[node], begin);
      this.readersEnd[node] = Math.max(this.readersEnd[node], end);
    };
    this.queries.node.forEach((node, query) => add(node, query, query + 1));
    this.upwards = [...depth.keys()].sort((a, b) => depth[b] - depth[a]);
    for (const node of this.upwards)
      if (parent[node] >= 0 && this.readersEnd[node] > 0) add(parent[node], this.readersBegin[node], this.readersEnd[node]);
    this.drawn = this.upwards.filter(node => this.readersEnd[node] > 0).reverse();
    this.unread = this.nodes.tokens.filter((tokens, node) => this.readersEnd[node] === 0 && !this.nodes.dead.includes(node)).length;
  }

  findRuns() {
    const {runs, items} = this;
    this.runCount = runs.node.length;
    this.itemOfRun = new Int32Array(this.runCount);
    this.runsOfNode = Array.from({length: this.nodeCount}, () => []);
    for (let item = 0; item < this.itemCount; ++item)
      for (let run = items.run[item]; run < items.run[item + 1]; ++run) {
        this.itemOfRun[run] = item;
        this.runsOfNode[runs.node[run]].push(run);
      }
  }

  // When each unit begins: a block does its units one after another, and a launch waits for the launch before it.
  findTimes() {
    const phaseOf = new Int32Array(this.itemCount);
    this.phases.forEach((phase, at) => phaseOf.fill(at, phase.begin, phase.begin + phase.count));
    this.phaseOf = phaseOf;
    this.endUs = most(this.phases.map(phase => phase.end));
    this.loads = this.blocks.loads;
    this.blockCount = this.loads.length;
    this.unitBeginUs = null;
    if (!this.blocks.units) return;
    const {units, begin} = this.blocks, times = new Float64Array(units.length);
    for (let block = 0; block < this.blockCount; ++block) {
      let at = 0;
      for (let unit = begin[block]; unit < begin[block + 1]; ++unit) {
        const item = this.itemOf(units[unit]);
        at = Math.max(at, this.phases[phaseOf[item]].us);
        times[unit] = at;
        at += this.items.us[item];
      }
    }
    this.unitBeginUs = times;
  }
  itemOf(unit) { return Math.floor(unit / this.heads); }
  headOf(unit) { return unit % this.heads; }

  // Chunks of the same queries get hues far apart, as do the same chunks of neighbouring queries.
  chooseColours() {
    const {begin, count: queries, run} = this.items, {node, begin: token} = this.runs, {position, depth} = this.nodes;
    const first = item => run[item] < run[item + 1] ? position[node[run[item]]] + token[run[item]] : 0;
    const order = [...Array(this.itemCount).keys()].sort((a, b) => begin[a] - begin[b] || queries[b] - queries[a] || first(a) - first(b));
    this.hues = new Float32Array(this.itemCount);
    this.isDeep = new Uint8Array(this.itemCount);
    let tile = -1, chunk = 0;
    order.forEach((item, at) => {
      const before = order[at - 1];
      if (at === 0 || begin[item] !== begin[before] || queries[item] !== queries[before]) [tile, chunk] = [tile + 1, 0];
      this.hues[item] = (205 + 137.508 * chunk++ + 77 * tile) % 360;
      this.isDeep[item] = run[item] < run[item + 1] ? depth[node[run[item]]] % 2 : 0;
    });
  }

  isPartial(item) { return this.items.slot[item] >= 0; }
  itemEnd(item) { return this.items.begin[item] + this.items.count[item]; }
  writes(item) {
    const slot = this.items.slot[item];
    if (slot < 0) return "writes outputs";
    return `writes partials, ${several("slot", "slots", slot, slot + this.items.count[item])}`;
  }
  // Where the first token begins to be seen of a run with a slope, else where all are.
  readers(run, token) {
    const from = this.runs.from[run] + (this.runs.slope[run] ? token - this.runs.begin[run] : 0);
    return [from, this.runs.to[run]];
  }
  runAt(node, token, query) {
    return this.runsOfNode[node].find(run => {
      const begin = this.runs.begin[run];
      if (token < begin || token >= begin + this.runs.tokens[run]) return false;
      const [from, to] = this.readers(run, token);
      return query >= from && query < to;
    });
  }
  path(node) {
    const found = [];
    for (let at = node; at >= 0; at = this.nodes.parent[at]) found.push(at);
    return found.reverse();
  }
  itemsOfNode(node) { return [...new Set(this.runsOfNode[node].map(run => this.itemOfRun[run]))].sort((a, b) => a - b); }
  itemsOfQuery(query) {
    const found = [];
    for (let item = 0; item < this.itemCount; ++item) {
      if (query < this.items.begin[item] || query >= this.itemEnd(item)) continue;
      for (let run = this.items.run[item]; run < this.items.run[item + 1]; ++run)
        if (query >= this.runs.from[run] && query < this.runs.to[run]) { found.push(item); break; }
    }
    return found;
  }
  unitsOfItem(item) {
    const found = [];
    if (!this.blocks.units) return found;
    for (let block = 0; block < this.blockCount; ++block)
      for (let unit = this.blocks.begin[block]; unit < this.blocks.begin[block + 1]; ++unit)
        if (this.itemOf(this.blocks.units[unit]) === item) found.push({block, unit});
    return found;
  }
  itemsOfBlock(block) {
    if (!this.blocks.units) return [];
    return [...new Set(this.blocks.units.slice(this.blocks.begin[block], this.blocks.begin[block + 1]).map(unit => this.itemOf(unit)))];
  }
  isSameTree(other) {
    const same = (a, b) => a.length === b.length && a.every((value, at) => value === b[at]);
    return same(this.nodes.parent, other.nodes.parent) && same(this.nodes.tokens, other.nodes.tokens) && same(this.queries.node, other.queries.node);
  }
}
