// Blocks over time as the price model has them: a row is a block, a bar is a unit, in the colour of its item.
class TimeChart extends Chart {
  constructor(plan) {
    super(plan, `What each of ${counted(plan.blockCount, plan.worker, plan.worker + "s")} computes when, by the price model`, {left: Math.max(46, 12 + 7 * count(plan.blockCount).length), top: 20, right: 10, bottom: 34});
  }
  // As wide for both plans, so that lengths compare.
  size() {
    const longest = Math.max(...state.plans.map(plan => plan.endUs)) || 1;
    return {width: longest * 1.01, height: Math.max(this.plan.blockCount, 1)};
  }
  wantedHeight(width) {
    return Math.min(Math.max(this.plan.blockCount * 20, 60), width < 600 ? 280 : 360) + this.margins.top + this.margins.bottom;
  }

  paint(draw) {
    this.items = state.itemsIn(this.plan);
    this.picked = state.pickedIn(this.plan);
    this.text(draw, this.plan.worker, 2, 13, {colour: "faint"});
    this.rowNumbers(draw, this.plan.blockCount);
    this.paintAxis(draw);
    this.clipped(draw, () => this.plan.unitBeginUs ? this.paintUnits(draw) : this.paintLoads(draw));
    this.paintLimits(draw);
  }
  paintAxis(draw) {
    const {left, top, width, height} = this.plot, step = niceStep(this.view.width, width / 80);
    const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    draw.strokeStyle = this.ink("line");
    draw.lineWidth = 1;
    for (let us = Math.max(Math.ceil(this.view.x / step - 1e-9), 0) * step; us <= this.view.x + this.view.width; us += step) {
      const x = this.toX(us);
      draw.beginPath();
      draw.moveTo(x, top);
      draw.lineTo(x, top + height + 4);
      draw.stroke();
      if (x < left + width - 8) this.text(draw, fixed(us, digits), x, top + height + 16, {colour: "faint", align: "center"});
    }
    this.text(draw, "µs by the price model", left + width / 2, top + height + 31, {colour: "faint", align: "center"});
  }
  // Of many blocks those that a row of pixels is for.
  rows() {
    const step = Math.max(1, Math.floor(this.view.height / this.plot.height / 2));
    const begin = Math.floor(Math.max(this.view.y, 0) / step) * step;
    return {begin, end: Math.min(Math.ceil(this.view.y + this.view.height), this.plan.blockCount), step};
  }
  rowBox(block, step) {
    const y = Math.round(this.toY(block)), height = Math.max(Math.round(this.toY(block + step)) - y, 1);
    return [y, height > 4 ? height - 1 : height];
  }
  paintUnits(draw) {
    const {plan} = this, {units, begin} = plan.blocks, {begin: first, end, step} = this.rows();
    for (let block = first; block < end; block += step) {
      const [y, height] = this.rowBox(block, step);
      for (let unit = begin[block]; unit < begin[block + 1]; ++unit) {
        const item = plan.itemOf(units[unit]), us = plan.items.us[item];
        const x = this.toX(plan.unitBeginUs[unit]), right = this.toX(plan.unitBeginUs[unit] + us);
        if (right < this.plot.left || x > this.plot.left + this.plot.width) continue;
        const isFaint = this.items !== null && (this.picked.kind === "block" ? block !== this.picked.id : !this.items.has(item));
        draw.fillStyle = this.fillOf(item, isFaint);
        draw.fillRect(x, y, Math.max(right - x - (right - x > 3 ? 0.7 : 0), 0.5), height);
        if (height < 13 || right - x < 20) continue;
        const text = [`item ${item}, head ${plan.headOf(units[unit])}`, `item ${item}`, `${item}`].find(one => draw.measureText(one).width + 8 < right - Math.max(x, this.plot.left));
        if (text) this.text(draw, text, Math.max(x, this.plot.left) + 4, y + height / 2 + 4, {colour: isFaint ? "faint" : "ink"});
      }
    }
  }
  paintLoads(draw) {
    const {begin, end, step} = this.rows();
    draw.fillStyle = this.ink("first");
    for (let block = begin; block < end; block += step) {
      const [y, height] = this.rowBox(block, step);
      draw.fillRect(this.toX(0), y, this.toX(this.plan.loads[block]) - this.toX(0), height);
    }
  }
  // Where launches end, and the mean.
  paintLimits(draw) {
    const {left, top, width, height} = this.plot, {phases, loads} = this.plan;
    let free = left; // of labels
    const line = (us, colour, dashes, text, align) => {
      const x = this.toX(us);
      if (x < left || x > left + width) return;
      draw.strokeStyle = this.ink(colour);
      draw.setLineDash(dashes);
      draw.lineWidth = 1.3;
      draw.beginPath();
      draw.moveTo(x, top - 3);
      draw.lineTo(x, top + height);
      draw.stroke();
      draw.setLineDash([]);
      const room = draw.measureText(text).width, from = align === "right" ? Math.max(x - 4 - room, left) : Math.min(x + 4, left + width - room);
      if (!text || from < free) return;
      free = from + room + 6;
      this.text(draw, text, from, 13, {colour});
    };
    const busy = phases.filter(phase => phase.count > 0);
    if (this.plan.isGpu && busy.length > 1) {
      busy.forEach(phase => line(phase.us, "faint", [2, 3], phase.name, "left"));
      return;
    }
    const mean = loads.reduce((sum, us) => sum + us, 0) / Math.max(loads.length, 1);
    if (mean > 0) line(mean, "bad", [5, 3], `mean ${usText(mean)}`, "right");
  }

  at(px, py) {
    const {plan} = this, block = Math.floor(this.fromY(py));
    if (py < this.plot.top || py > this.plot.top + this.plot.height || block < 0 || block >= plan.blockCount) return null;
    const head = `${plan.worker} ${count(block)}`, load = `busy for ${usText(plan.loads[block])} by the price model`;
    const ofBlock = {lines: [head, load, ...(plan.unitBeginUs ? ["click for its items"] : [])], pick: plan.unitBeginUs ? ["block", block] : null};
    if (px < this.plot.left || !plan.unitBeginUs) return ofBlock;
    const us = this.fromX(px), {units, begin} = plan.blocks;
    for (let unit = begin[block]; unit < begin[block + 1]; ++unit) {
      const from = plan.unitBeginUs[unit], item = plan.itemOf(units[unit]), to = from + plan.items.us[item];
      if (us < from || us >= to) continue;
      return {lines: [`item ${count(item)}, ${plan.unit} ${plan.headOf(units[unit])}`, `${head}: from ${usText(from)} to ${usText(to)} by the price model`,
        `${counted(plan.items.tokens[item], "token", "tokens")}, ${counted(plan.items.count[item], "query", "queries")}, ${plan.writes(item)}`, "click for the item"],
        pick: ["item", item], show: [from, block, to - from, 1]};
    }
    return {...ofBlock, lines: [head, `idle at ${usText(us)} by the price model`, load]};
  }
}
