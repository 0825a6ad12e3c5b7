import { byId, setText } from './dom.js';

/** Resolves the open question; null without one. */
let answer = null;

/** Asks for a confirmation. Resolves to true only for the button `yes`. */
export function ask(title, text, yes, no = 'Keep') {
  const dialog = byId('confirm');
  // Browsers report a closed dialog with the next frame: it can be open for the next question by then.
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

/** Shows a message for a few seconds. */
export function toast(text) {
  const element = byId('toast');
  element.textContent = text;
  element.classList.add('shown');
  clearTimeout(timer);
  timer = setTimeout(() => element.classList.remove('shown'), 6000);
}

/** Shows the text that the work resolves to, or why it failed. */
export async function toastResult(work) {
  try {
    toast(await work());
  } catch (error) {
    toast(`Failed: ${error.message}`);
  }
}
