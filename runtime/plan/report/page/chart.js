// A canvas with a world that is zoomed and moved. A chart has: size() of the world, paint(draw), at(x, y) gives {lines, pick} of a place.
class Chart {
  constructor(plan, label, margins) {
    this.plan = plan;
    this.margins = margins;
    this.canvas = element("canvas", {tabindex: 0, role: "img", "aria-label": label});
    this.tools = element("span", {class: "tools"}, element("span", {class: "zoom"}, [["−", "Zoom out", () => this.zoom(1 / 1.6)], ["+", "Zoom in", () => this.zoom(1.6)], ["fit", "Show all", () => this.fit()]]
        .map(([text, title, act]) => element("button", {type: "button", title, "aria-label": title, onclick: act}, text))));
    this.box = element("div", {}, this.canvas);
    this.pointers = new Map();
    this.listen();
    state.listeners.push(() => this.redraw());
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    this.fit();
  }

  fit() {
    const {width, height} = this.size();
    this.view = {x: 0, y: 0, width: Math.max(width, 1e-9), height: Math.max(height, 1e-9)};
    this.changed();
  }
  // The other plan's chart goes where this one goes, if they show the same world.
  changed() {
    this.redraw();
    const twin = this.twin;
    if (!twin || twin.isTrue !== this.isTrue) return;
    twin.view = {...this.view};
    twin.redraw();
  }
  get isZoomed() {
    const {width, height} = this.size();
    return this.view.width < width * 0.999 || this.view.height < height * 0.999;
  }
  clamp() {
    const {width, height} = this.size(), view = this.view;
    view.width = Math.min(Math.max(view.width, width / 1e5), width);
    view.height = Math.min(Math.max(view.height, Math.min(1, height)), height);
    view.x = Math.min(Math.max(view.x, 0), width - view.width);
    view.y = Math.min(Math.max(view.y, 0), height - view.height);
  }
  zoom(factor, x = this.view.x + this.view.width / 2, y = this.view.y + this.view.height / 2, isWide = false) {
    const view = this.view;
    const shrink = (from, length, at, by) => [at - (at - from) / by, length / by];
    [view.x, view.width] = shrink(view.x, view.width, x, factor);
    if (!isWide) [view.y, view.height] = shrink(view.y, view.height, y, factor);
    this.clamp();
    this.changed();
  }
  move(x, y) {
    this.view.x += x;
    this.view.y += y;
    this.clamp();
    this.changed();
  }
  // With some room around it.
  show(x, y, width, height, room = 0.25) {
    this.view = {x: x - width * room, y: y - height * room, width: width * (1 + 2 * room), height: height * (1 + 2 * room)};
    this.clamp();
    this.changed();
  }

  get plot() {
    const {left, top, right, bottom} = this.margins;
    return {left, top, width: Math.max(this.width - left - right, 10), height: Math.max(this.height - top - bottom, 10)};
  }
  toX(x) { return this.plot.left + (x - this.view.x) / this.view.width * this.plot.width; }
  toY(y) { return this.plot.top + (y - this.view.y) / this.view.height * this.plot.height; }
  fromX(x) { return this.view.x + (x - this.plot.left) / this.plot.width * this.view.width; }
  fromY(y) { return this.view.y + (y - this.plot.top) / this.plot.height * this.view.height; }
  isInPlot(x, y) {
    const {left, top, width, height} = this.plot;
    return x >= left && x <= left + width && y >= top && y <= top + height;
  }

  redraw() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => { this.isAsked = false; this.drawNow(); });
  }
  drawNow() {
    this.width = this.canvas.clientWidth;
    if (this.width < 20) return; // not on the page yet
    this.height = Math.round(this.wantedHeight(this.width));
    const ratio = window.devicePixelRatio || 1;
    this.canvas.style.height = `${this.height}px`;
    if (this.canvas.width !== Math.round(this.width * ratio) || this.canvas.height !== Math.round(this.height * ratio)) {
      this.canvas.width = Math.round(this.width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
    }
    const draw = this.canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    this.ink = name => style.getPropertyValue(`--${name}`).trim();
    draw.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw.clearRect(0, 0, this.width, this.height);
    draw.font = "12px system-ui, sans-serif";
    draw.textBaseline = "alphabetic";
    this.paint(draw);
  }
  // Paints what does not reach beyond the plot.
  clipped(draw, paint) {
    const {left, top, width, height} = this.plot;
    draw.save();
    draw.beginPath();
    draw.rect(left, top, width, height);
    draw.clip();
    paint();
    draw.restore();
  }
  fillOf(item, isFaint) {
    if (!this.tones) this.tones = new Map();
    const theme = document.documentElement.dataset.theme;
    const key = `${theme}${item}${isFaint}`;
    if (!this.tones.has(key)) {
      const light = this.ink(this.plan.isDeep[item] ? "light-b" : "light-a");
      this.tones.set(key, `hsl(${this.plan.hues[item].toFixed(1)} ${this.ink("sat")} ${light} / ${isFaint ? 0.16 : 1})`);
    }
    return this.tones.get(key);
  }
  rimOf(item) { return `hsl(${this.plan.hues[item].toFixed(1)} ${this.ink("sat")} ${this.ink("rim")})`; }
  text(draw, text, x, y, {colour = "ink", align = "left", weight = "", halo = false, isUp = false} = {}) {
    draw.save();
    draw.font = `${weight} 12px system-ui, sans-serif`;
    draw.textAlign = align;
    draw.translate(x, y);
    if (isUp) draw.rotate(-Math.PI / 2);
    if (halo) {
      draw.lineWidth = 3;
      draw.lineJoin = "round";
      draw.strokeStyle = this.ink("card");
      draw.globalAlpha = 0.75;
      draw.strokeText(text, 0, 0);
      draw.globalAlpha = 1;
    }
    draw.fillStyle = this.ink(colour);
    draw.fillText(text, 0, 0);
    draw.restore();
  }
  // Numbers down the left side, a step apart that leaves room for them.
  rowNumbers(draw, rows) {
    const step = Math.max(1, niceStep(this.view.height, this.plot.height / 15));
    for (let row = Math.ceil(Math.floor(this.view.y) / step) * step; row < Math.min(this.view.y + this.view.height, rows); row += step) {
      const y = (this.toY(row) + this.toY(row + 1)) / 2;
      if (y >= this.plot.top && y < this.plot.top + this.plot.height)
        this.text(draw, count(row), this.plot.left - 6, Math.min(Math.max(y + 4, this.plot.top + 10), this.plot.top + this.plot.height - 1), {colour: "faint", align: "right"});
    }
  }

  // A unit of a wheel, whatever it counts in.
  listen() {
    const canvas = this.canvas;
    const place = event => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", event => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      event.preventDefault();
      const [x, y] = place(event);
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.004)), this.fromX(x), this.fromY(y), event.shiftKey);
    }, {passive: false});
    canvas.addEventListener("pointerdown", event => {
      this.pointers.set(event.pointerId, place(event));
      this.moved = 0;
      if (event.isTrusted) canvas.setPointerCapture(event.pointerId); // an event of a script has no pointer
    });
    canvas.addEventListener("pointermove", event => this.moveTo(event, place(event)));
    for (const end of ["pointerup", "pointercancel"])
      canvas.addEventListener(end, event => {
        const wasDown = this.pointers.delete(event.pointerId);
        canvas.classList.remove("drags");
        if (end === "pointerup" && wasDown && this.moved < 4 && this.pointers.size === 0) {
          const found = this.at(...place(event));
          if (found?.pick) state.pick(this.plan.index, ...found.pick);
          else state.clear();
        }
      });
    canvas.addEventListener("pointerleave", () => tip.hide());
    canvas.addEventListener("dblclick", event => {
      event.preventDefault();
      const found = this.at(...place(event));
      if (found?.show) this.show(...found.show);
    });
    canvas.addEventListener("keydown", event => {
      const {width, height} = this.view;
      const known = {"+": () => this.zoom(1.6), "=": () => this.zoom(1.6), "-": () => this.zoom(1 / 1.6), 0: () => this.fit(), Escape: () => state.clear(),
        ArrowLeft: () => this.move(-width / 8, 0), ArrowRight: () => this.move(width / 8, 0), ArrowUp: () => this.move(0, -height / 8), ArrowDown: () => this.move(0, height / 8)};
      if (!known[event.key] || event.ctrlKey || event.metaKey || (event.key.startsWith("Arrow") && !this.isZoomed)) return;
      event.preventDefault();
      known[event.key]();
    });
  }
  moveTo(event, [x, y]) {
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      const found = event.pointerType === "touch" ? null : this.at(x, y);
      if (found) tip.show(event.clientX, event.clientY, found.lines);
      else tip.hide();
      return;
    }
    tip.hide();
    this.moved += Math.hypot(x - before[0], y - before[1]);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) { // two fingers
      const ratio = Math.hypot(x - other[0], y - other[1]) / Math.max(Math.hypot(before[0] - other[0], before[1] - other[1]), 1);
      this.zoom(ratio, this.fromX((x + other[0]) / 2), this.fromY((y + other[1]) / 2));
    } else if (this.moved > 4) {
      this.canvas.classList.add("drags");
      this.move((before[0] - x) / this.plot.width * this.view.width, (before[1] - y) / this.plot.height * this.view.height);
    }
    this.pointers.set(event.pointerId, [x, y]);
  }
}
