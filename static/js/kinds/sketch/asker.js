// Asks sketches over the websocket, and takes their answers out of the messages of the server.

import { gettext } from "../../i18n.js";
import { documentsAfter } from "./answers.js";

const PATIENCE_MS = 15_000;
// A question that is followed is asked again after so long, or after so many times as long as its answer took: a large
// area may take the engine some seconds, and many pages may ask.
const REST_MS = 10_000;
const REST_SHARE = 5;
const SLOW = gettext("The engine has not answered yet. It may be busy, or the stream may not be sketched yet.");

export class SketchAsker {
  socket;
  pulse;
  visible;
  now;
  later;
  cancel;

  /**
   * @param {Record<string, any>} socket with `request(message)` and `send(message)`
   * @param {Record<string, any>} parts `pulse(stream)`, which changes when the stream has new elements; `visible()`, whether anybody can see the
   *   page; `now()`, in milliseconds; `later(run, ms)`, returning what `cancel` takes
   */
  constructor(
    socket,
    {
      pulse,
      visible = () => true,
      now = () => performance.now(),
      later = (task, ms) => setTimeout(task, ms),
      cancel = (timer) => clearTimeout(timer),
    },
  ) {
    Object.assign(this, { socket, pulse, visible, now, later, cancel });
    this.open = new Set(); // questions that have not ended
    this.byNumber = new Map(); // those that wait for an answer, and have a number
  }

  /**
   * Ask a question until it ends. If its plan is not `once`, it is asked again after a while when the stream has new elements, and
   * on a new connection.
   *
   * @param {Record<string, any>} asked `plan`, or `text` like SQL
   * @param {Record<string, any>} on `answers(documents, plan)`; `plan(plan, text, note)`, once the server has understood the question, with what to know before its answer comes, or null; `error(message)`
   * @returns {Record<string, any>} with `end()`
   */
  ask(asked, on) {
    const question = { asked, on, number: null, ended: false, once: asked.plan?.once === true };
    question.end = () => this.#end(question);
    this.open.add(question);
    this.#send(question);
    return question;
  }

  /** Take a message if it answers an open question; return whether it did. */
  takes({ type, query, rows }) {
    if (type !== "answer.snapshot" && type !== "answer.change") return false;
    const question = this.byNumber.get(query);
    if (!question) return false;
    if (rows.length === 0) return true; // the engine has heard the question, and answers in its next batch
    const { plan } = question;
    this.#rest(question);
    question.on.answers(documentsAfter([], rows), plan);
    return true;
  }

  /** A new connection knows of no question: ask all open ones again. */
  reset() {
    this.byNumber.clear();
    for (const question of this.open) this.#send(question);
  }

  async #send(question) {
    question.number = null;
    question.pulse = this.#pulseOf(question);
    question.sentMs = this.now();
    this.#wait(question, PATIENCE_MS, () => question.on.error?.(SLOW));
    const { text, plan: asked } = question.asked;
    try {
      const about = asked ? { plan: { ...asked, once: true } } : { text };
      const reply = await this.socket.request({ type: "sketch.ask", ...about, format: "arrow" });
      const { query, plan, text: words, note } = reply;
      if (question.ended) return this.socket.send({ type: "sketch.end", query });
      question.number = query;
      question.pulse = this.pulse(plan.stream);
      if (!question.plan) {
        question.once ||= text !== undefined && plan.once;
        question.plan = { ...plan, once: question.once };
        question.asked = { plan: question.plan };
        question.on.plan?.(question.plan, words.replace(/ ONCE$/, ""), note ?? null);
      }
      this.byNumber.set(query, question);
    } catch (error) {
      if (question.ended || error.code === "offline") return; // it is asked again once the connection is back
      this.#end(question);
      question.on.error?.(error.message);
    }
  }

  /** End an answered question on the server, and ask it again later if it is followed. */
  #rest(question) {
    this.#forget(question);
    if (question.once) return void this.#end(question);
    const restMs = Math.max(REST_MS, REST_SHARE * (this.now() - question.sentMs));
    const again = () => {
      if (this.visible() && this.#pulseOf(question) !== question.pulse) this.#send(question);
      else this.#wait(question, REST_MS, again);
    };
    this.#wait(question, restMs, again);
  }

  #pulseOf({ plan }) {
    return plan ? this.pulse(plan.stream) : undefined;
  }

  #wait(question, ms, run) {
    this.cancel(question.timer);
    question.timer = this.later(run, ms);
  }

  #forget(question) {
    if (question.number === null) return;
    this.byNumber.delete(question.number);
    this.socket.send({ type: "sketch.end", query: question.number });
    question.number = null;
  }

  #end(question) {
    if (question.ended) return;
    question.ended = true;
    this.cancel(question.timer);
    this.open.delete(question);
    this.#forget(question);
  }
}
