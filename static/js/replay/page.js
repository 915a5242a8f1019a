// Puts together the replay: the past in place of the live map, a clock, a bar.

import { $, coalesced, debounced } from "../dom.js";
import { filled, gettext } from "../i18n.js";
import { pageEvents } from "../page-events.js";
import { AnswerTrack } from "./answer-track.js";
import { ReplayApi } from "./api.js";
import { ReplayBar } from "./bar.js";
import { ReplayClock } from "./clock.js";
import { Player } from "./player.js";
import { Stage } from "./stage.js";

const HOUR_MS = 3_600_000;
const SPANS_MS = { hour: HOUR_MS, "3 hours": 3 * HOUR_MS, day: 24 * HOUR_MS };
const MOST_QUERIES = 50; // of which the server plays the answers
const TICK_MS = 50; // between two steps of the clock
const ADDRESS_MS = 5000; // between two times in the address while the replay goes on
const MOVED_MS = 200;
const AIM_MS = 150;
const FOLLOWED_MS = 500;
const BEGIN_MS = 600_000; // before now, where a replay begins

/**
 * @param {Record<string, any>} parts `store`, `map`, `palette()`, `now()`; `shown(stream)`; `Arrow`; `onStage()`, called when the page turns to
 *   the past and back; `onJump()`, called when the replay jumps to another time; `onAddress()`; `onError(text)`
 */
export function createReplay({ store, map, palette, now, shown, Arrow, onStage, onJump, onAddress, onError }) {
  const stage = new Stage(store);
  const api = new ReplayApi(Arrow);
  const clock = new ReplayClock({ fromMs: now() - HOUR_MS, toMs: now(), atMs: now() - BEGIN_MS });
  let stored = []; // the streams that can be replayed
  let player = null;
  let timer = null;
  let refused = {};
  let writtenMs = -Infinity;
  let turning = null; // what is opened while the server is asked what is stored

  const bar = new ReplayBar({
    clock,
    palette,
    queryOf: (number) => store.queries.get(number),
    onSeek: (ms) => {
      player.aim(ms);
      render();
      arrive();
    },
    onPlay: (on) => {
      if (!on) clock.pause();
      else if (clock.atMs >= clock.toMs) player.seek(clock.fromMs);
      if (on) clock.play();
      player.pace();
      render();
      write();
    },
    onSpeed: (speed, by) => {
      if (by) clock.shift(by);
      else clock.speed = speed;
      player.pace();
      render();
      write();
    },
    onSpan: (name) => choose(Date.now() + store.clockOffsetMs - SPANS_MS[name], Date.now() + store.clockOffsetMs),
    onOwnSpan: choose,
    onLive: leave,
    onAnswers: (on) => {
      player.answers.on = on;
      player.follow();
    },
  });
  // A slider that is dragged says many times; each jump costs the server some work.
  const arrive = debounced(() => {
    if (!player?.aiming) return;
    player.seek(clock.atMs);
    render();
    write();
  }, AIM_MS);
  $("open-replay").addEventListener("click", () => toggle());
  map.leaflet.on(
    "moveend",
    debounced(() => player?.moved(), MOVED_MS),
  );
  const follow = coalesced(() => {
    player?.follow();
    if (player) note();
  }, FOLLOWED_MS);
  store.on("queries streams", () => stage.past && follow());

  const streams = () => stored.map(({ name }) => name).filter((name) => store.streams.has(name) && shown(name));
  const lifeMs = (name) => 1000 * (stored.find((one) => one.name === name)?.life_s ?? 0);
  const replayed = () =>
    store
      .listed()
      .filter((query) => query.shown && query.status !== "failed")
      .slice(0, MOST_QUERIES);

  async function enter(/** @type {Record<string, any>} */ { atMs, speed = 1, playing = false }) {
    turning = { atMs };
    const asked = turning;
    try {
      stored = (await api.stored()).streams;
    } catch (error) {
      onError(error.message);
      return;
    }
    if (turning !== asked) return;
    turning = null;
    if (stored.length === 0) {
      onError(
        gettext("No stream stores its elements, so there is nothing to replay. An administrator can switch that on."),
      );
      return;
    }
    const nowMs = now() + store.clockOffsetMs;
    const spanMs = Object.values(SPANS_MS).find((length) => atMs === undefined || atMs >= nowMs - length);
    Object.assign(clock, {
      fromMs: spanMs ? nowMs - spanMs : atMs - HOUR_MS / 2,
      toMs: spanMs ? nowMs : atMs + HOUR_MS / 2,
      speed,
    });
    $("replay-span").value = Object.keys(SPANS_MS).find((name) => SPANS_MS[name] === spanMs) ?? "own";
    clock.seek(
      atMs ?? Math.max(nowMs - BEGIN_MS, Math.min(...stored.map(({ first_us: first }) => (first ?? 0) / 1000))),
    );
    refused = {};
    const answers = new AnswerTrack({
      clock,
      queries: () => replayed().map(({ query }) => query),
      revisions: () => replayed().map(({ revision }) => revision),
      ask: (numbers, span, signal) => api.answers(numbers, span, clock.toMs, null, signal),
      askScene: (numbers, span, sceneMs, signal) => api.answers(numbers, span, clock.toMs, sceneMs, signal),
      onTold: () => player?.tick(),
      onRefused: (errors) => {
        refused = { ...refused, ...errors };
        note();
      },
      onError,
    });
    answers.on = $("replay-answers").checked;
    stage.enter();
    player = new Player({
      store,
      stage,
      clock,
      api,
      answers,
      bounds: () => map.bounds(),
      streams,
      lifeMs,
      now,
      onError,
      onJump,
    });
    bar.stored = stored;
    bar.show(true);
    onStage();
    player.follow();
    if (playing) clock.play();
    timer = setInterval(step, TICK_MS);
    note();
    showTicks();
    render();
    write();
  }

  function leave() {
    if (!stage.past) return;
    clearInterval(timer);
    player.end();
    player = null;
    clock.pause();
    stage.leave();
    bar.show(false);
    onStage();
    onJump();
    write();
  }

  function toggle() {
    if (stage.past) leave();
    else enter({});
  }

  function step() {
    player.tick();
    render();
    if (clock.playing && now() - writtenMs > ADDRESS_MS) write();
  }

  const render = () => bar.render(player.state());

  function write() {
    writtenMs = now();
    onAddress();
  }

  function choose(fromMs, toMs) {
    clock.within(fromMs, toMs);
    player.seek(clock.atMs);
    showTicks();
    render();
    write();
  }

  async function showTicks() {
    const span = { fromMs: clock.fromMs, toMs: clock.toMs };
    try {
      const told = await api.events(span);
      if (span.fromMs !== clock.fromMs || span.toMs !== clock.toMs) return;
      const known = told.events.map((event) => ({
        ...event,
        sign: event.sign === "+" ? 1 : -1,
        timeMs: event.time_us / 1000,
        colour: store.queries.get(event.query)?.colour,
      }));
      bar.events = known.filter(({ colour }) => colour !== undefined);
      bar.drawTicks();
    } catch (error) {
      onError(error.message);
    }
  }

  /** Say what the replay does not show. */
  function note() {
    const missing = [...store.streams.values()].filter(
      ({ name, enabled }) => enabled !== false && shown(name) && !stored.some((one) => one.name === name),
    );
    const titles = missing.map(({ title, name }) => title || name).join(", ");
    const names = Object.keys(refused)
      .map((number) => store.queries.get(Number(number))?.name)
      .filter(Boolean)
      .join(", ");
    const parts = [
      titles && filled(gettext("Not stored: %(streams)s."), { streams: titles }),
      names && filled(gettext("Without answers: %(queries)s."), { queries: names }),
    ];
    bar.note(parts.filter(Boolean).join(" "));
  }

  pageEvents.on("theme", () => bar.drawTicks());
  return {
    stage,
    toggle,
    leave,
    apply: (message, nowMs) => stage.apply(message, nowMs),
    follow,
    /** The time that is replayed, and the speed; null while the map is live. */
    state: () => (stage.past ? { atMs: clock.atMs, speed: clock.speed } : null),
    /** Show the time of a state, or live for null. */
    turn(told) {
      if (!told) return leave();
      if (!stage.past) return enter(told);
      clock.speed = told.speed;
      if (told.atMs < clock.fromMs || told.atMs > clock.toMs) choose(told.atMs - HOUR_MS / 2, told.atMs + HOUR_MS / 2);
      return player.seek(told.atMs);
    },
  };
}
