import { byId, setHidden } from './dom.js';

/** Accessible tabs: arrow keys move and open, and only the open one is in the tab order. */
export class Tabs {
  #tabs;
  #onOpen;

  /** @param onOpen gets the id of the opened panel */
  constructor(list, onOpen) {
    this.#tabs = [...list.querySelectorAll('[role=tab]')];
    this.#onOpen = onOpen;
    for (const tab of this.#tabs) {
      tab.addEventListener('click', () => this.open(panelOf(tab)));
      tab.addEventListener('keydown', (event) => this.#key(event, tab));
    }
  }

  open(panel) {
    for (const tab of this.#tabs) {
      const chosen = panelOf(tab) === panel;
      tab.setAttribute('aria-selected', String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      setHidden(byId(panelOf(tab)), !chosen);
    }
    this.#onOpen(panel);
  }

  #key(event, tab) {
    const tabs = this.#tabs.filter(({ hidden }) => !hidden);
    const at = tabs.indexOf(tab);
    const last = tabs.length - 1;
    const next = {
      ArrowRight: at === last ? 0 : at + 1,
      ArrowLeft: at === 0 ? last : at - 1,
      Home: 0,
      End: last,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    tabs[next].focus();
    this.open(panelOf(tabs[next]));
  }
}

function panelOf(tab) {
  return tab.getAttribute('aria-controls');
}
