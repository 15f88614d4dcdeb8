// @ts-check
/** Whether the kernel is still there while something is said to run: a dead one says nothing. */

const UNSAID_MS = 5_000;
const ANSWER_MS = 4_000;

export class Watch {
  /**
   * @param {import("../link.js").Link} link
   * @param {(isHeard: boolean) => void} tell told when nothing is heard, and when something is again
   * @param {() => number} [now] milliseconds
   */
  constructor(link, tell, now = () => performance.now()) {
    this.link = link;
    this.tell = tell;
    this.now = now;
    this.askedAt = 0; // 0 while no answer is waited for
    this.isHeard = true;
  }

  /** Look, a few times a second. @param {boolean} isRunning whether something is said to run */
  look(isRunning) {
    const now = this.now(), { heardAt } = this.link;
    if (heardAt > this.askedAt) this.askedAt = 0;
    if (!this.askedAt && !this.isHeard) this.told(true);
    if (!isRunning || now - heardAt < UNSAID_MS) return;
    if (!this.askedAt) {
      this.askedAt = now;
      this.link.ask("previews", { ns: [] }).catch(() => {}); // any answer will do
    } else if (this.isHeard && now - this.askedAt > ANSWER_MS) this.told(false);
  }

  /** @param {boolean} isHeard */
  told(isHeard) {
    this.isHeard = isHeard;
    this.tell(isHeard);
  }
}
