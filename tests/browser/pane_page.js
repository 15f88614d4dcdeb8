/* What `test_pane.py` does inside the page of `tree_page`: the kernel's answers, and measuring. */
window.pane = (() => {
  const frame = () => new Promise(requestAnimationFrame);
  const all = (selector) => [...document.querySelectorAll(selector)];

  /** Answer for every entry with what `window.said` holds. */
  function answer(said) {
    window.said = said;
    const { answers } = window.kernel;
    answers.detail = ({ n }) => ({
      n, id: `id-${n}`, params: { temperature: 0.2 }, created_at: "2026-11-30T12:00:00Z", json: "{}",
      text: `text of #${n}`, blocks: [{ type: "text", text: `text of #${n}` }], ...window.said,
    });
    answers.code = ({ name, args }) => ({ code: `chat.${name}(${args.n ?? args.winner})` });
    answers.estimate = ({ count }) => ({ text: `about ${count * 250} tokens`, cost_usd: null });
    answers.request = () => JSON.stringify({ messages: [] });
  }

  const acts = () => window.kernel.sent.filter(({ type }) => type === "cmd").map(({ name, args }) => [name, args]);

  /** What axe-core finds in the parts that are there. */
  async function violations(parts) {
    const include = parts.filter((part) => document.querySelector(part)).map((part) => [part]);
    const { violations } = await axe.run({ include });
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
  }

  /** Classes of what reaches out of the widget. */
  function clipped() {
    const root = document.querySelector(".nbd-widget").getBoundingClientRect();
    const reachesOut = (part) => {
      const { left, right, width } = part.getBoundingClientRect();
      return width > 1 && !part.closest(".nbd-hidden") && (left < root.left - 1 || right > root.right + 1);
    };
    return all(".nbd-pane, .nbd-pane *, .nbd-compose *").filter(reachesOut).map((part) => part.className);
  }

  function sideways() {
    const body = document.querySelector(".nbd-pane-body");
    return body.scrollWidth - body.clientWidth;
  }

  /** Let a run grow under the leaf for 60 frames; what moved, and where the end is. */
  async function grow() {
    const { kernel } = window, { leaf } = kernel.state.head, tree = document.querySelector(".nbd-tree-list");
    const tick = (tokens) => ({ op: "live", run: "r", tokens, cost_usd: tokens / 10_000 });
    kernel.put({ ...tick(0), parent: leaf, model: "sonnet-5", state: "streaming", ttft: 0.4 });
    await frame();
    await frame();
    tree.dispatchEvent(new KeyboardEvent("keydown", { key: "End" }));
    for (let at = 0; at < 5; at++) await frame();
    const moved = [];
    const noted = ({ sources }) => sources.forEach(({ node }) => moved.push(node?.className ?? String(node?.nodeName)));
    const seen = new PerformanceObserver((list) => list.getEntries().forEach(noted));
    seen.observe({ type: "layout-shift", buffered: false });
    for (let at = 1; at <= 60; at++) {
      kernel.put({ op: "text", run: "r", text: " word".repeat(12) }, tick(12 * at));
      await frame();
    }
    await frame();
    seen.disconnect();
    const body = document.querySelector(".nbd-pane-body");
    return { moved, length: body.textContent.length, left: body.scrollHeight - body.scrollTop - body.clientHeight };
  }

  return { answer, acts, violations, clipped, sideways, grow };
})();
