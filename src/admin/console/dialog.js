import { byId, setText } from './dom.js';

/** Asks whether to continue; resolves to false unless that was said in so many words. */
export function ask(title, text, yes, no = 'Keep') {
  const dialog = byId('confirm');
  setText(byId('confirm-title'), title);
  setText(byId('confirm-text'), text);
  setText(byId('confirm-yes'), yes);
  setText(byId('confirm-no'), no);
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}

let timer = null;

/** Says what has happened, for a few seconds. */
export function toast(text) {
  const element = byId('toast');
  element.textContent = text;
  element.classList.add('shown');
  clearTimeout(timer);
  timer = setTimeout(() => element.classList.remove('shown'), 6000);
}
