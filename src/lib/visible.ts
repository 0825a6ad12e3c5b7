/** Control characters but line break and tab, and the marks that turn the direction of writing around. */
const HIDDEN = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|[^\P{Cc}\n\t]/gu;
const BREAKS = /[\n\t]/g;

/**
 * Text for a terminal: characters that would move its cursor, change its colours or hide text become escapes such as `\u001b`. JSON
 * stays equal.
 */
export function visibleLines(text: string): string {
  return text.replace(HIDDEN, escape);
}

/** As `visibleLines`, in one line: a name or an id cannot begin a line. */
export function visible(text: string): string {
  return visibleLines(text).replace(BREAKS, escape);
}

function escape(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
