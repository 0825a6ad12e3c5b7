import { byId, setText } from './dom.js';

/** Tells who has asked; null when nobody waits. */
let answer = null;

/** Asks whether to continue; resolves to false unless that was said in so many words. */
export function ask(title, text, yes, no = 'Keep') {
  const dialog = byId('confirm');
  // Browsers say only with the next frame that a dialog was closed: by then it can be open for another question.
  answer?.();
  setText(byId('confirm-title'), title);
  setText(byId('confirm-text'), text);
  setText(byId('confirm-yes'), yes);
  setText(byId('confirm-no'), no);
  dialog.returnValue = '';
  dialog.showModal();
  dialog.addEventListener('close', closed);
  return new Promise((resolve) => {
    answer = () => {
      answer = null;
      resolve(!dialog.open && dialog.returnValue === 'yes');
    };
  });
}

function closed({ target }) {
  if (!target.open) answer?.();
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

/** Says what came of the work: the text that it resolves to, or why it failed. */
export async function toastResult(work) {
  try {
    toast(await work());
  } catch (error) {
    toast(`Failed: ${error.message}`);
  }
}
