// Records a visit with rrweb's own recorder after the visitor has agreed, and sends it batch by batch:
//
//   events ─► batch ─► localStorage ─► collector ─► acknowledged: deleted
//
// <script defer src="https://…/TOKEN/recorder.js" data-named="q size" data-purchase=".thank-you"></script>
//
// docs/own_shop.md lists the shop's settings (data-*). A batch is in localStorage before it is sent, so no data is lost
// if the collector is down or the page closes: the next page continues to send, and the number of a batch reveals a
// repetition. While a page of a tab is open, the tab's id is not in sessionStorage, because a duplicated tab would copy
// it.
window.ShopR1 = (() => {
  const { dataset: settings, src } = document.currentScript;
  for (let page = window; page.frameElement; ) { // a page with the snippet also records its frames of the same origin
    page = page.parent;
    if (Array.from(page.document.scripts).some((script) => script.src === src))
      return { consent: (isGiven) => page.ShopR1.consent(isGiven), purchase: () => page.ShopR1.purchase() };
  }
  const collector = new URL("batches", src).href;
  const named = new Set((settings.named || "").split(/[\s,]+/).filter(Boolean));
  const [IDLE_MS, FLUSH_MS, MOST_CHARACTERS, BEACON_BYTES] = [30 * 60_000, 1_000, 200_000, 60_000];
  const REFUSED = [400, 409, 413]; // permanently
  const BATCH = "shop_r1.batch.";
  // rrweb's maskAllInputs does not mask hidden fields and names of files.
  const KINDS = "color date datetime-local email file hidden month number password range search select tel text textarea time url week";
  const MASKED = Object.fromEntries(KINDS.split(" ").map((kind) => [kind, true]));
  const unkept = new Map(); // batches that do not fit into localStorage
  let stop = null, session, tab, pending = [], length = 0, timer = 0, isSending = false, hurry = () => {}, boughtAt;

  const drawn = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const read = (storage, name) => JSON.parse(storage.getItem(name) || "null");
  const write = (storage, name, value) => storage.setItem(name, JSON.stringify(value));

  /** Finds or begins the session and the tab; returns whether the session is new. */
  function open() {
    session = read(localStorage, "shop_r1.session");
    const isOver = session && ((session.over && session.over !== location.href) || Date.now() - session.last > IDLE_MS);
    const isNew = !session || (settings.session ? settings.session !== session.id : isOver);
    if (isNew) session = { id: settings.session || drawn() };
    session.user = settings.user || localStorage.getItem("shop_r1.user") || drawn();
    localStorage.setItem("shop_r1.user", session.user);
    touch({});
    tab = read(sessionStorage, "shop_r1.tab");
    sessionStorage.removeItem("shop_r1.tab");
    if (tab?.session !== session.id) tab = { window: tab?.window || drawn(), session: session.id, number: 0 };
    return isNew;
  }

  function touch(more) {
    write(localStorage, "shop_r1.session", Object.assign(session, { last: Date.now() }, more));
  }

  const isNewest = () => read(localStorage, "shop_r1.session")?.id === session.id; // otherwise another tab has begun a session

  function emit(event) {
    pending.push(JSON.stringify(event));
    length += pending.at(-1).length;
    if (event.type === 2 || length > MOST_CHARACTERS) flush(); // a page is sent at once, because all later events need it
    else timer ||= setTimeout(flush, FLUSH_MS);
    if (event.data.source === 0) lookForPurchase(); // the page has changed
  }

  function flush() {
    clearTimeout(timer);
    timer = 0;
    if (!pending.length) return;
    const head = { session_id: session.id, user_id: session.user, window_id: tab.window, number: tab.number };
    const name = `${BATCH}${session.id}.${tab.window}.${String(tab.number).padStart(8, "0")}`;
    const body = `${JSON.stringify(head).slice(0, -1)},"events":[${pending}]}`;
    [tab.number, pending, length] = [tab.number + 1, [], 0];
    try {
      if (isNewest()) touch({});
      localStorage.setItem(name, body);
    } catch {
      unkept.set(name, body);
    }
    send();
  }

  const waiting = () => [...Object.keys(localStorage).filter((name) => name.startsWith(BATCH)), ...unkept.keys()].sort();
  const bodyOf = (name) => unkept.get(name) ?? localStorage.getItem(name);

  async function send() {
    if (isSending) return;
    isSending = true;
    for (let pause = 1_000, name; (name = waiting()[0]); ) {
      if (bodyOf(name) === null) continue; // another tab has sent it
      const body = new Blob([bodyOf(name)]);
      // A browser allows 64 kB for all keepalive requests, including beacons of closed pages, and refuses the others. A
      // request that has failed is therefore repeated without keepalive.
      const keepalive = pause === 1_000 && body.size < BEACON_BYTES;
      const answer = await fetch(collector, { method: "POST", body, keepalive }).catch(() => null);
      const isRefused = REFUSED.includes(answer?.status);
      if (answer && !answer.ok && (isRefused || pause === 1_000)) {
        const outcome = isRefused ? "refused some events, which are lost" : "does not take events now; they wait here";
        console.error(`shop-r1: the collector ${outcome} (${answer.status}): ${await answer.text().catch(() => "")}`);
      }
      if (answer?.ok || isRefused) {
        unkept.delete(name);
        localStorage.removeItem(name);
        pause = 1_000;
      } else {
        await new Promise((resume) => setTimeout((hurry = resume), pause));
        pause = Math.min(2 * pause, 30_000);
      }
    }
    isSending = false;
  }

  function begin() {
    if (stop) return;
    const isNew = open();
    stop = rrwebRecord.record({
      emit,
      maskInputOptions: MASKED,
      maskInputFn: (text, field) =>
        field?.type !== "password" && (named.has(field?.name) || named.has(field?.id)) ? text : "*".repeat(text.length),
      maskTextSelector: "*", // maskTextFn then masks the texts in editable parts of the page
      maskTextFn: (text, element) => (element?.isContentEditable ? text.replace(/\S/g, "*") : text),
      userTriggeredOnInput: true,
      recordAfter: "DOMContentLoaded",
      slimDOMOptions: "all",
      sampling: { mousemove: false, scroll: 500 },
    });
    const persona = localStorage.getItem("shop_r1.persona");
    if (isNew && settings.goal) note("shop_r1.goal", { text: settings.goal });
    if (isNew && persona) note("shop_r1.persona", { text: persona });
    if (!document.hidden) note("shop_r1.view", {});
    lookForPurchase();
    send();
  }

  function note(tag, payload) {
    if (stop) rrwebRecord.record.addCustomEvent(tag, payload);
  }

  const UNRENDERED = /^(area|br|datalist|noscript|script|style|template|wbr)$/i; // even if they have an effect
  const CLOSED = /^(select|svg)$/i; // their content has no boxes, or is a drawing

  /** Returns the rrweb ids of the outermost elements that are not rendered. */
  function notRendered(tree, ids = []) {
    for (const node of tree?.children ?? []) {
      if (UNRENDERED.test(node.localName) || /^(checkbox|radio)$/.test(node.type)) continue; // shops draw tick boxes themselves
      if (!node.checkVisibility() && getComputedStyle(node).display !== "contents") ids.push(rrwebRecord.record.mirror.getId(node));
      else if (!CLOSED.test(node.localName)) notRendered(node, notRendered(node.shadowRoot, ids));
    }
    return ids;
  }

  /** Notes these elements before rrweb records a press or the first key in a field. */
  function noteHidden() {
    if (stop && document.body?.checkVisibility) note("shop_r1.hidden", { ids: notRendered(document.body).filter((id) => id > 0) });
  }
  let typedInto = null;
  addEventListener("pointerdown", noteHidden, true);
  addEventListener("keydown", ({ key, target }) => (typedInto !== (typedInto = target) || key === "Enter") && noteHidden(), true);

  /** Returns the content of all fields: after "back", browsers restore typed texts without an event. */
  const filled = () => JSON.stringify(Array.from(document.querySelectorAll("input, textarea, select"), (field) => [field.value, field.checked]));
  const atFirst = filled();

  /** Notes a purchase if its element is displayed: it may be hidden on every page, or appear without a new document. */
  function lookForPurchase() {
    if (!settings.purchase || boughtAt === location.href) return;
    if (!Array.from(document.querySelectorAll(settings.purchase)).some((element) => element.checkVisibility?.() ?? true)) return;
    boughtAt = location.href;
    purchase();
  }

  /** Notes that the last click of this tab was a purchase; the next page begins another session. */
  function purchase() {
    note("shop_r1.purchase", {});
    if (stop && isNewest()) touch({ over: location.href });
  }

  /** Stops recording in this tab, and deletes data that was not sent. */
  function halt() {
    stop?.();
    [stop, pending] = [null, []];
    unkept.clear();
    sessionStorage.removeItem("shop_r1.tab");
  }

  /**
   * Stores the visitor's answer. "No" also revokes an earlier "yes" and deletes data that was not sent. Returns the
   * visitor's id in the data that was sent, by which that data can be erased.
   */
  function consent(isGiven) {
    const user = settings.user || localStorage.getItem("shop_r1.user");
    if (!isGiven) {
      halt();
      Object.keys(localStorage).filter((name) => name.startsWith("shop_r1.")).forEach((name) => localStorage.removeItem(name));
    }
    localStorage.setItem("shop_r1.consent", isGiven ? "yes" : "no");
    if (isGiven) setTimeout(begin); // later, so that the click on "yes" is not recorded
    return user;
  }

  const agreed = () => localStorage.getItem("shop_r1.consent") ?? (settings.consent === "given" ? "yes" : null);

  addEventListener("pagehide", () => {
    if (!stop) return;
    flush();
    write(sessionStorage, "shop_r1.tab", tab);
    for (const name of waiting()) {
      const body = new Blob([bodyOf(name)]);
      if (body.size < BEACON_BYTES && !navigator.sendBeacon(collector, body)) break;
    }
  });
  addEventListener("pageshow", (event) => {
    if (!event.persisted || !stop) return; // a page from the back/forward cache needs a new snapshot
    if (agreed() !== "yes") return halt();
    open();
    rrwebRecord.record.takeFullSnapshot();
    note("shop_r1.view", {});
  });
  addEventListener("storage", ({ key, newValue }) => key === "shop_r1.consent" && newValue === "no" && halt()); // by another tab
  addEventListener("auxclick", (event) => { // rrweb records no click of the middle button, which opens a tab
    const [target] = event.composedPath(); // also in a shadow tree
    const id = stop && event.button === 1 && target.closest?.("a[href]") ? rrwebRecord.record.mirror.getId(target) : 0;
    if (id > 0) emit({ type: 3, timestamp: Date.now(), data: { source: 2, type: 2, id } });
  }, true);
  addEventListener("visibilitychange", () => (document.hidden ? stop && flush() : note("shop_r1.view", {})));
  addEventListener("load", () => setTimeout(() => stop && filled() !== atFirst && rrwebRecord.record.takeFullSnapshot()));
  addEventListener("online", () => hurry());
  const address = () => note("shop_r1.address", { href: location.href }); // for pages that change their address without a new document
  addEventListener("popstate", address);
  for (const method of ["pushState", "replaceState"]) {
    const plain = history[method];
    history[method] = function (...parameters) {
      plain.apply(this, parameters);
      address();
    };
  }
  if (agreed() === "yes") begin();
  return { settings, agreed, consent, purchase, note, isRecording: () => stop !== null };
})();
