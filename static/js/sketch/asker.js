// Asks sketches over the websocket, and takes their answers out of the messages of the server.

import { documentsAfter } from "./answers.js";

const PATIENCE_MS = 15_000;
const SLOW = "The engine has not answered yet. It may be starting, or the stream may not be sketched yet.";

export class SketchAsker {
  /** @param {object} socket with `request(message)` and `send(message)` */
  constructor(socket) {
    this.socket = socket;
    this.open = new Set(); // questions that are asked, also those without a number yet
    this.byNumber = new Map();
  }

  /**
   * Ask a question, again after every new connection until it ends.
   *
   * @param {object} asked `plan`, or `text` like SQL
   * @param {object} on `answers(documents, plan)`, for the first answers and after each change; `plan(plan, text)`, once the server
   *   has understood the question; `error(message)`
   * @returns {object} with `end()`
   */
  ask(asked, on) {
    const question = { asked, on, documents: [], number: null, ended: false };
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
    question.documents = documentsAfter(type === "answer.snapshot" ? [] : question.documents, rows);
    if (rows.length === 0) return true; // the engine has heard the question, and answers in its next batch
    clearTimeout(question.timer);
    question.on.answers(question.documents, question.plan);
    if (question.plan.once) this.#end(question);
    return true;
  }

  /** A new connection knows of no question: ask all open ones again. */
  reset() {
    this.byNumber.clear();
    for (const question of this.open) this.#send(question);
  }

  async #send(question) {
    question.number = null;
    clearTimeout(question.timer);
    question.timer = setTimeout(() => question.on.error?.(SLOW), PATIENCE_MS);
    try {
      const { query, plan, text } = await this.socket.request({ type: "sketch.ask", ...question.asked, format: "arrow" });
      if (question.ended) return this.socket.send({ type: "sketch.end", query });
      Object.assign(question, { number: query, plan });
      this.byNumber.set(query, question);
      question.on.plan?.(plan, text);
    } catch (error) {
      if (question.ended || error.code === "offline") return; // it is asked again once the connection is back
      this.#end(question);
      question.on.error?.(error.message);
    }
  }

  #end(question) {
    if (question.ended) return;
    question.ended = true;
    clearTimeout(question.timer);
    this.open.delete(question);
    if (question.number === null) return;
    this.byNumber.delete(question.number);
    this.socket.send({ type: "sketch.end", query: question.number });
  }
}
