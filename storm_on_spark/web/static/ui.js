// Keeps the part of a page fresh that changes: by server-sent events, or by asking now and then while these are refused.
"use strict";
(() => {
  const live = document.getElementById("live");
  const state = document.getElementById("state");
  if (!live || !document.querySelector("header nav") || !live.textContent.trim()) return;
  const slowly = 5000;
  const longest = 60000;
  const unsaid = "The server does not answer; this is what it said last.";
  let source = null;
  let timer = null;
  let gone = false;
  // How long to ask only, after events were refused or broke off, before they are tried again; and from when on.
  let pause = slowly;
  let again = 0;

  // What a reader is in the middle of stays: the focus, what is unfolded, what is scrolled, what is selected.
  function show(html) {
    const selection = document.getSelection();
    if (selection && !selection.isCollapsed && live.contains(selection.anchorNode)) return;
    const focused = document.activeElement;
    const inside = focused && live.contains(focused);
    if (inside && ["INPUT", "SELECT", "TEXTAREA"].includes(focused.tagName)) return;
    const key = (element) => element.getAttribute("href") || element.getAttribute("aria-label") || element.textContent;
    const open = new Set([...live.querySelectorAll("details[open]")].map((each) => each.textContent));
    const scrolled = new Map([...live.querySelectorAll(".scroll, pre")].map((each, at) => [at, [each.scrollLeft, each.scrollTop, each.scrollTop + each.clientHeight >= each.scrollHeight - 4]]));
    const name = inside ? key(focused) : null;
    const tag = inside ? focused.tagName : null;
    const part = (element) => element.closest("section")?.getAttribute("aria-labelledby");
    const within = inside ? part(focused) : null;
    const like = () => [...live.querySelectorAll(tag)].filter((each) => key(each) === name && part(each) === within);
    const place = inside ? like().indexOf(focused) : -1;
    live.innerHTML = html;
    for (const each of live.querySelectorAll("details")) if (open.has(each.textContent)) each.open = true;
    [...live.querySelectorAll(".scroll, pre")].forEach((each, at) => {
      if (!scrolled.has(at)) return;
      [each.scrollLeft, each.scrollTop] = scrolled.get(at);
      if (each.classList.contains("follow") && scrolled.get(at)[2]) each.scrollTop = each.scrollHeight;
    });
    if (inside) {
      const again = like()[place] ?? like()[0];
      if (again) again.focus({ preventScroll: true });
    }
  }

  function tell(text) {
    if (state.textContent !== text) state.textContent = text;
  }

  async function ask() {
    timer = null;
    let answered = false;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.ok) {
        const found = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
        if (found) show(found.innerHTML);
        tell("");
        answered = true;
      } else {
        const ends = { 401: "The session has ended: load the page to log in.", 404: "What this page shows is no more." };
        gone = answer.status in ends;
        tell(gone ? ends[answer.status] : unsaid);
      }
    } catch {
      tell(unsaid);
    }
    if (gone || document.hidden || source || timer) return;
    if (answered && Date.now() >= again) start();
    else timer = setTimeout(ask, slowly);
  }

  function stop() {
    if (source) source.close();
    clearTimeout(timer);
    source = timer = null;
  }

  function start() {
    stop();
    if (gone) return;
    source = new EventSource(location.href);
    source.onmessage = (event) => { show(event.data); tell(""); pause = slowly; again = 0; };
    source.addEventListener("gone", () => { gone = true; stop(); tell("What this page shows is no more."); });
    source.onerror = () => {
      stop();
      again = Date.now() + pause;
      pause = Math.min(2 * pause, longest);
      timer = setTimeout(ask, 1000);
    };
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  addEventListener("pagehide", stop);
  for (const each of live.querySelectorAll("pre.follow")) each.scrollTop = each.scrollHeight;
  start();
})();
