// Puts the page together: store, socket, map and panels.

import { Address } from "./address.js";
import { connectParts } from "./address-parts.js";
import { AreaFields } from "./queries/area-fields.js";
import { AroundMenu } from "./queries/around-menu.js";
import { openingAroundMenu } from "./queries/around-opening.js";
import { aboutObject, placeOf } from "./queries/around-targets.js";
import { createBaseChoice } from "./map/base-choice.js";
import { confirmed } from "./confirm.js";
import { createCountLegend } from "./layers/count-legend.js";
import { DisplayFilter } from "./display-filter/display-filter.js";
import { createDisplayFilter } from "./display-filter/page.js";
import { $, coalesced, debounced } from "./dom.js";
import { RectangleEditor } from "./map/draw.js";
import { questionOf } from "./queries/estimate.js";
import { EventList } from "./events/event-list.js";
import { createExamples } from "./queries/examples.js";
import { FeatureEditor } from "./layers/feature-editor.js";
import { FeatureLayers } from "./layers/feature-layers.js";
import { FeaturePanel } from "./layers/feature-panel.js";
import { startFrameMeter } from "./frame-meter.js";
import { HistoryLayer } from "./history/history-layer.js";
import { HistoryPanel, viewOfRow } from "./history/history-panel.js";
import { createIncidents } from "./incidents/page.js";
import { kindOf } from "./kinds/registry.js";
import { createKiosk } from "./kiosk.js";
import { keepAddress } from "./language.js";
import { createLayersPage } from "./layers/layers-page.js";
import { LayersApi } from "./layers/layers-api.js";
import { createLayers } from "./layers/layers.js";
import { createLitQueries } from "./map/lit-queries.js";
import { MonitorMap } from "./map/map.js";
import { MeasureTool } from "./measure/tool.js";
import { Navigation, OBJECT_ZOOM } from "./map/navigation.js";
import { ObjectPanel, Tooltip } from "./objects/object-panel.js";
import { createPalette } from "./map/palette.js";
import { ABOUT, nameAbout } from "./kinds/about.js";
import { QueryForm } from "./queries/query-form.js";
import { BacktestLayer } from "./backtest/layer.js";
import { BacktestPanel } from "./backtest/panel.js";
import { filled, gettext } from "./i18n.js";
import { begunJoin } from "./kinds/join/plan.js";
import { escape } from "./page-events.js";
import { RuleForm } from "./kinds/rule/form.js";
import { createQueryList } from "./queries/query-list.js";
import { QueryPages } from "./queries/query-pages.js";
import { recall, remember } from "./remembered.js";
import { createRegions } from "./map/regions.js";
import { createReplay } from "./replay/page.js";
import { createReports } from "./report/page.js";
import { reshaping } from "./queries/reshaping.js";
import { createSearch } from "./search.js";
import { createShortcuts } from "./shortcuts.js";
import { isShown } from "./queries/shown-queries.js";
import { createSketches } from "./kinds/sketch/page.js";
import { Socket } from "./store/socket.js";
import { createStatusBar } from "./status-bar.js";
import { createStore, looksOf } from "./store/store.js";
import { Subscriptions } from "./store/subscriptions.js";
import { createSymbology } from "./symbology/page.js";
import { createTable } from "./table/page.js";
import { createTabs } from "./tabs.js";
import { createTheme, isDark } from "./theme.js";
import { ViewsPanel } from "./teams/views-panel.js";
import { toast } from "./toasts.js";
import { createUnitsControl, recallUnits } from "./units-control.js";
import { parseHash } from "./url-state.js";
import { createWhy } from "./why/page.js";

const { L, Arrow } = window;
const VIEW_WAIT_MS = 150;
const RESTALE_MS = 5000;
const SHOWN_MS = 150; // a scrolled list shows many cards in a moment
const QUERIES_MS = 100; // the status of a thousand queries may come in a second

recallUnits();
const page = JSON.parse($("page").textContent);
const now = () => Date.now();
const store = createStore(recall("layers"));
const { search, hash } = location; // of before the page writes another one
const opened = parseHash(hash);
let chosen = opened?.streams ?? null; // names of the streams that are shown; null for all
const shown = (name) => chosen === null || chosen.includes(name);
const palette = createPalette();
const address = new Address({
  view: () => ({ ...map.view(), streams: chosen }),
  showView,
  table: () => table.state(),
  showTable: (state) => table.turn(state),
  onFaults: (faults) =>
    toast(
      filled(gettext("The address has parts that Lookout does not know, and ignores: %(parts)s."), {
        parts: faults.join(", "),
      }),
      "error",
    ),
});
const filter = new DisplayFilter(store);
const symbology = createSymbology({
  store,
  isDark,
  layer: () => map.objects,
  onTrails: (on) => panel.showTrails(on),
  onChange: () => address.write(),
});

const map = new MonitorMap($("map"), {
  L,
  store,
  now,
  palette: palette.read,
  hidden: (name) => !shown(name),
  veil: (name) => sketches.density.veil(name),
  marks: () => table.marks(),
  filter,
  colourBy: symbology.colourBy,
  paint: symbology.paint,
  baseUrls: { ...document.body.dataset, world: document.body.dataset.world.split(" ") },
  baseMaps: page.base_maps,
  isDark,
  onPlan: reshaping(ask),
  start: opened ?? recall("view"), // where the last visit ended
});
const navigation = new Navigation({ map, store });
const api = new LayersApi(page.csrf);
const features = new FeatureLayers(L, map.leaflet, {
  store,
  api,
  palette: palette.read,
  onError: (text) => toast(text, "error"),
  onDrawn: () => tooltip.refresh(),
});
const drawnHistory = new HistoryLayer(L, map.leaflet, palette.read);
const editor = new RectangleEditor(L, map.leaflet, { colour: () => palette.read().accent });
const tabs = createTabs(() => {
  events.refresh();
  incidents.panel.refresh();
  address.write();
});

const socket = new Socket(`${page.websocket}?queries=asked`, {
  Arrow,
  onState: (state, _, reason) => store.setLink(state, now(), reason),
  onOpen: () => {
    subscriptions.reset();
    sketches.asker.reset();
    past.lost();
  },
  onConfirm: ({ estimate }, { type }) => {
    const { question, yes, no } = questionOf(estimate, type === "query.edit");
    return confirmed(question, yes, no);
  },
  onMessage: receive,
});
const pages = new QueryPages({
  store,
  ask: (message) => socket.request(message),
  onError: ({ code, message }) => code !== "offline" && toast(message, "error"), // it asks again once the connection is back
  onChange: () => {
    queryList.render();
    subscriptions.refresh();
  },
});
const subscriptions = new Subscriptions({
  store,
  socket,
  bounds: () => map.bounds(),
  shown,
  whole: () => table.whole,
  watched: () => table.watched,
  wanted: (query, area) =>
    table.query === query.query ||
    isShown(query, { few: pages.few, cards: queryList.cards, opened: queryList.opened, events: events.query, area }),
});
const subscribe = coalesced(() => subscriptions.refresh(), SHOWN_MS);
const pastMarks = new BacktestLayer(L, map.leaflet, () => palette.read().accent);
const past = new BacktestPanel({
  store,
  layer: pastMarks,
  send: (message) => socket.send(message),
  now,
  onPlace: (place) => map.flyTo(...place, OBJECT_ZOOM),
});
const form = new QueryForm({
  store,
  past,
  editor: editor.sharedBy((rectangle) => form.showNumbers(rectangle)),
  areas: (parts) => new AreaFields(L, map.leaflet, { store, colour: () => palette.read().accent, ...parts }),
  view: () => map.bounds(),
  centerLon: () => map.leaflet.getCenter().lng,
  center: () => placeOf(map.leaflet.getCenter()),
  dimensions: () => store.dimensions,
  preview: (query, plan, onDraft) => map.moving.preview(query?.query, plan, onDraft),
  save: (query, fields) => {
    if (query) return socket.request({ type: "query.edit", query: query.query, ...fields });
    queryList.all(); // a search might hide the new query
    return socket.request({ type: "query.register", ...fields });
  },
  check: (fields) => socket.request({ type: "filter.check", ...fields }),
  onOpen: () => {
    document.body.dataset.form = "open";
    tabs.show("queries");
    showQueries();
  },
  onClose: () => {
    delete document.body.dataset.form;
    showQueries();
    $("new-query").focus();
  },
});
const ruleForm = new RuleForm({
  store,
  past,
  save: (rule, fields) => {
    if (rule) return socket.request({ type: "query.edit", query: rule.query, ...fields });
    queryList.all();
    return socket.request({ type: "query.register", ...fields });
  },
  onSaved: ({ query }) => queryList.open(query),
});
const events = new EventList({
  store,
  open: () => tabs.current() === "events",
  onFilter: subscribe,
  onWhy: (event) => why.ofEvent(event),
  onPick: (event) => {
    const { stream, key, lon, lat, threshold, query } = event;
    if (event.partnerPlace) return navigation.toPair(event);
    if (threshold) return store.queries.has(query) && navigation.toQuery(store.queries.get(query));
    if (!key) return showPlace(event);
    const slot = store.objects.slot(stream, key);
    store.select(stream, key);
    if (slot === undefined) map.flyTo(lon, lat, OBJECT_ZOOM);
    else navigation.locate(slot);
  },
});
const panel = new ObjectPanel({
  store,
  now,
  onFollow: (slot) => map.follow(slot),
  onLocate: (slot) => navigation.locate(slot),
  onFollowing: () => address.write(),
  onTrails: symbology.showTrails,
  onHistory: (stream, key) => historyPanel.trace(stream, key),
  onAround: (stream, key, point) => aroundMenu.show(aboutObject(store, stream, key), point),
});
const aroundMenu = new AroundMenu({
  titleOf: (stream) => store.streams.get(stream)?.title ?? stream,
  onPick: async (about, target) => {
    const message = {
      type: "query.register",
      name: nameAbout(about, target.name),
      plan: about.plan(target.stream, target.focus),
    };
    const made = await ask(message);
    if (!made) return;
    tabs.show("queries");
    queryList.open(made.query);
  },
  onMore: (target) => form.start(null, ABOUT[0].plan(target.stream, target.focus), nameAbout(ABOUT[0], target.name)),
});
const table = createTable({
  store,
  map,
  navigation,
  now,
  shown,
  onAddress: () => address.write(),
  onSubscribe: () => {
    subscriptions.view();
    subscribe();
  },
});
const historyPanel = new HistoryPanel({
  store,
  layer: drawnHistory,
  editor: editor.sharedBy((rectangle) => historyPanel.showRectangle(rectangle)),
  now,
  view: () => map.bounds(),
  ask: (message) => socket.request(message),
  onOpen: () => tabs.show("history"),
  onBox: (box) => map.fitBox(box),
  onPick: (row) => {
    const { place, box } = viewOfRow(row);
    if (place) map.flyTo(...place, OBJECT_ZOOM);
    else map.fitBox(box);
  },
});
const incidents = createIncidents({
  store,
  now,
  ask: (message) => socket.request(message),
  open: () => tabs.current() === "incidents",
  onPick: showIncident,
  onWhy: (incident) => why.ofIncident(incident),
  trace: async (stream, key, span) => (await historyPanel.traceSpan(stream, key, span)).length,
  onError: (text) => toast(text, "error"),
});
const sketches = createSketches({
  L,
  map,
  store,
  socket,
  editor,
  palette: palette.read,
  isDark,
  now,
  onOpen: () => tabs.show("statistics"),
  onSaved: ({ query }) => {
    tabs.show("queries");
    queryList.open(query);
  },
});
const why = createWhy({
  L,
  map: map.leaflet,
  store,
  colour: () => palette.read().accent,
  ask: (message) => socket.request(message),
});
const reports = createReports({
  L,
  map,
  store,
  editor,
  palette: palette.read,
  layer: drawnHistory,
  now,
  onOpen: () => tabs.show("history"),
  onDraw: () => historyPanel.clear(),
});
$("feature-report").addEventListener("click", () => reports.panel.openFor(store.selectedFeature));
const tooltip = new Tooltip({
  store,
  now,
  map: map.leaflet,
  layer: map.objects,
  features,
  history: drawnHistory,
  density: sketches.density,
  disabled: () => drawing() || map.moving.dragging || aroundMenu.open,
  onPick: (slot) => navigation.select(slot),
  onPickFeature: (found) => store.selectFeature(found),
  onPickRow: (index) => {
    tabs.show("history");
    historyPanel.select(index);
  },
});
const featureEditor = new FeatureEditor(L, map.leaflet, {
  colour: () => palette.read().accent,
  onChange: () => featurePanel.refresh(),
});
const featurePanel = new FeaturePanel({
  store,
  api,
  features,
  editor: featureEditor,
  done: (text) => toast(text),
  watch: (plan, name) => form.start(null, plan, name),
});

const queryList = createQueryList(store, pages, {
  now,
  seen: () => {
    subscribe();
    address.write();
  },
  pick: (slot) => navigation.pick(slot),
  object: (stream, key, [lon, lat]) => {
    store.select(stream, key);
    map.flyTo(lon, lat, OBJECT_ZOOM);
  },
  roles: (query, asked) => subscriptions.roles(query, asked),
  zoom: (query) => navigation.toQuery(query),
  show: (query) => store.show(query.query, !query.shown),
  alarm: (query) => ruleForm.start(query),
  edit: (query) => {
    const { asked, ruled } = kindOf(query.plan);
    if (ruled && ruleForm.edit(query)) return;
    navigation.toQuery(query);
    if (asked) sketches.panel.edit(query);
    else form.start(query);
  },
  pause: (query) => ask({ type: "query.edit", query: query.query, paused: query.status !== "paused" }),
  share: (query) => ask({ type: "query.edit", query: query.query, shared: !query.shared }),
  cancel: async (query) => {
    const question = gettext(
      "Delete \u201c%(name)s\u201d? It is deleted for all users, and this cannot be undone. To stop it for a while, pause it.",
    );
    if (!(await confirmed(filled(question, query), gettext("Delete")))) return;
    ask({ type: "query.cancel", query: query.query }, filled(gettext("Deleted \u201c%(name)s\u201d."), query));
  },
  events: (query) => {
    tabs.show("events");
    events.filterBy(query.query);
  },
});
const layers = createLayersPage({
  store,
  api,
  navigation,
  now,
  mostBytes: page.upload_bytes,
  onOpen: () => tabs.show("layers"),
  draw: (layer, kind) => featurePanel.draw(layer, kind),
  start: (plan) => form.start(null, plan),
});
createLitQueries(map.leaflet, $("query-list"), {
  at: (place) => map.queryAt(place),
  onChange: (numbers) => map.light(numbers),
});
createExamples(store, (listed) => ask({ type: "examples.show", shown: listed }));
const viewsPanel = new ViewsPanel({
  store,
  ask: (message) => socket.request(message),
  address: () => location.hash,
  open: openView,
});
createUnitsControl(store);
const base = createBaseChoice(map);
map.objects.names = recall("names") ?? true;
createLayers({
  store,
  map,
  now,
  shown,
  toggle: toggleStream,
  base: base.first,
  onBase: base.show,
  names: map.objects.names,
  onNames: setNames,
  ...sketches.switches,
});
createCountLegend({
  store,
  palette: palette.read,
  onJoin: layers.join,
  onPlain: (name) => store.colourByCount(name, false),
});
createRegions({
  L,
  map: map.leaflet,
  store,
  colour: () => palette.read().accent,
  onShow: (on) => subscriptions.regions(on),
});
const replay = createReplay({
  store,
  map,
  palette: palette.read,
  now,
  shown,
  Arrow,
  onStage: () => {
    subscriptions.store = replay.stage.live;
    map.leaflet.invalidateSize({ animate: false }); // the bar lies below the map
  },
  onJump: () => events.again(),
  onAddress: () => address.write(),
  onError: (text) => toast(text, "error"),
});
createStatusBar(store, now);
createSearch({ store, api, onObject: (slot) => navigation.pick(slot), ...navigation.found });
const measure = new MeasureTool(L, map.leaflet, { colour: () => palette.read().accent });
const displayFilter = createDisplayFilter({
  store,
  filter,
  shown,
  onChange: () => {
    map.objects.invalidate();
    address.write();
  },
});
const theme = createTheme($("theme"));
symbology.start();
const openAround = openingAroundMenu({
  store,
  map,
  menu: aroundMenu,
  shown,
  busy: () => drawing() || map.moving.dragging,
  onOpen: () => tooltip.hide(),
});
const kiosk = createKiosk({ store, map, now, onChange: () => address.write() });
createShortcuts([
  { key: "n", text: gettext("New query: draw a rectangle"), run: () => form.start() },
  { key: "j", text: gettext("New query: join with a layer"), run: () => form.start(null, begunJoin()) },
  { key: "q", text: gettext("Queries"), run: () => tabs.show("queries") },
  { key: "e", text: gettext("Events"), run: () => tabs.show("events") },
  { key: "i", text: gettext("Incidents"), run: () => tabs.show("incidents") },
  { key: "l", text: gettext("Layers"), run: () => tabs.show("layers") },
  { key: "s", text: gettext("Statistics"), run: () => tabs.show("statistics") },
  { key: "h", text: gettext("History"), run: () => tabs.show("history") },
  { key: "o", text: gettext("Table of objects"), run: () => table.toggle() },
  {
    key: "r",
    text: gettext(
      "Replay of what is stored, or back to live; then space plays, arrows go back and forward, or faster and slower",
    ),
    run: () => replay.toggle(),
  },
  { key: "w", text: gettext("Watch the selected object, or no longer"), run: () => table.starSelected() },
  { key: "v", text: gettext("Views, and share links"), run: () => viewsPanel.start() },
  { key: "/", text: gettext("Search for an object"), run: () => $("search").focus() },
  { key: "a", text: gettext("Queries around the selected object, or the middle of the map"), run: openAround },
  {
    key: "f",
    text: gettext("Follow the selected object"),
    run: () => store.selected && panel.setFollow(!panel.following),
  },
  {
    key: "y",
    text: gettext("Why is the selected object in an answer, or not?"),
    run: () => store.selected && $("object-why").focus(),
  },
  { key: "t", text: gettext("Trails on or off"), run: () => symbology.showTrails(!symbology.trailsOn()) },
  { key: "x", text: gettext("Show only some objects, by a filter"), run: () => displayFilter.toggle() },
  { key: "m", text: gettext("Measure lengths and areas"), run: () => measure.toggle() },
  { key: "k", text: gettext("Kiosk view: only the map, with a clock and counts"), run: () => kiosk.set(!kiosk.get()) },
  { key: "d", text: gettext("Dark or light"), run: theme.toggle },
  { key: "+", text: gettext("Zoom in"), run: () => map.leaflet.zoomIn() },
  { key: "-", text: gettext("Zoom out"), run: () => map.leaflet.zoomOut() },
  { key: "Escape", text: gettext("Cancel drawing, close a panel"), run: escape },
]);
for (const button of document.querySelectorAll("[data-new-query]"))
  button.addEventListener("click", () => form.start());
$("new-join").addEventListener("click", () => form.start(null, begunJoin()));

store.on("objects selection", () => map.objects.invalidate());
store.on("queries", coalesced(showQueries, QUERIES_MS));
store.on("queries", subscribe);
store.on("streams", () => subscriptions.view());
store.on("layers", () => remember("layers", looksOf(store)));
setInterval(() => map.refresh(), RESTALE_MS); // objects fade with time alone
map.leaflet.on("dragstart", () => panel.setFollow(false));
map.leaflet.on(
  "moveend",
  debounced(() => subscriptions.view(), VIEW_WAIT_MS),
);
map.leaflet.on("moveend", () => (subscribe(), address.write(), remember("view", map.view())));
new ResizeObserver(() => map.leaflet.invalidateSize({ pan: false })).observe($("map-area"));
if (new URLSearchParams(location.search).get("meter") === "1") {
  startFrameMeter(() => ({ objects: store.objects.live, visible: map.objects.visible.n }));
}
connectParts(address, {
  store,
  tabs,
  panel,
  queryList,
  pages,
  incidents,
  symbology,
  displayFilter,
  theme,
  kiosk,
  replay,
});
address.apply({ search, hash });
keepAddress();
socket.connect();

function receive(message) {
  if (past.takes(message)) return;
  if (message.type === "error") return toast(message.message, "error");
  if (sketches.asker.takes(message) || !subscriptions.expects(message)) return;
  incidents.follow(message);
  replay.apply(message, now());
  subscriptions.follow(message);
  pages.follow(message);
  viewsPanel.follow(message);
  if (["hello", "changes.missed"].includes(message.type)) layers.refresh();
}

/** Send a request that has no form to the server, and return the reply; after an error, show it as a toast and return null. */
async function ask(message, done) {
  try {
    const reply = await socket.request(message);
    if (done) toast(done);
    return reply;
  } catch (error) {
    toast(error.message, "error");
    return null;
  }
}

/** Fly to the place of an alarm about whole answers, which has no object, or to its query if it has no place. */
function showPlace({ lon, lat, query }) {
  if (Number.isFinite(lon) && Number.isFinite(lat)) map.flyTo(lon, lat, OBJECT_ZOOM);
  else if (store.queries.has(query)) navigation.toQuery(store.queries.get(query));
}

/** Select the object of an incident and fly to it; without an object, to the query. */
function showIncident({ stream, key, lon, lat, query }) {
  if (!key) return showPlace({ lon, lat, query });
  const slot = store.objects.slot(stream, key);
  if (slot !== undefined) return navigation.pick(slot);
  if (lon === null) return store.queries.has(query) && navigation.toQuery(store.queries.get(query));
  store.select(stream, key);
  map.flyTo(lon, lat, OBJECT_ZOOM);
}

function showQueries() {
  map.showQueries(store.listed(), form.open ? form.query?.query : undefined);
}

function toggleStream(name, on) {
  const all = [...store.streams.keys()];
  const next = all.filter((other) => (other === name ? on : shown(other)));
  chosen = next.length === all.length ? null : next;
  address.write();
  subscriptions.view();
  replay.follow();
  map.objects.invalidate();
}

function setNames(on) {
  remember("names", on);
  map.objects.names = on;
  map.objects.invalidate();
}

/** Show a saved view: its address, and only its queries and layers. */
function openView(view) {
  location.hash = view.address;
  const [wanted, wantedLayers] = [new Set(view.queries), new Set(view.layers)];
  for (const { query } of store.listed()) store.show(query, wanted.has(query));
  for (const { name } of [...store.layers.values()]) store.showLayer(name, wantedLayers.has(name));
}

/** Show a view of an address: the streams that it has, and its place. */
function showView({ lat, lon, zoom, streams }) {
  const other = JSON.stringify(streams) !== JSON.stringify(chosen);
  chosen = streams;
  map.leaflet.invalidateSize({ pan: false });
  map.leaflet.setView([lat, lon], zoom);
  if (!other) return;
  subscriptions.view();
  store.emit("streams");
}

/** Whether the user draws something, so that clicks on the map are for that. */
function drawing() {
  return (
    editor.active || form.area.active || featureEditor.active || sketches.drawing || reports.drawing || measure.active
  );
}
