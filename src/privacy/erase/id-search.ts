import { BACKSLASH } from '../../lib/json-text.ts';
import type { Subject } from '../../core/erasure.ts';
import { marksOf, textsOf } from '../../core/named-ids.ts';

/**
 * Looks for subjects in bytes before anything is parsed. Finds whatever names one of them (`namedIds`), and some that does
 * not; `anywhere` finds an id wherever its characters stand, in any case and inside of other words too.
 */
export class IdSearch {
  /** What two chunks must overlap by, so that an id on the seam is found. */
  readonly overlap: number;
  readonly #needles: readonly Needle[];
  /** The ids as names of files have them; longer ones first, for they may hold others. */
  readonly #written: readonly RegExp[];

  constructor(subjects: readonly Subject[], mode: 'named' | 'anywhere' = 'named') {
    this.#needles = subjects.flatMap(({ id, request }) => {
      const marks = mode === 'named' ? marksOf(id) : [...new Set([id, ...marksOf(id)])];
      return marks.map((mark) => ({ text: mark.toLowerCase(), bytes: fold(Buffer.from(mark)), request }));
    });
    const marks = new Set(subjects.flatMap(({ id }) => [id, ...marksOf(id)]));
    this.#written = [...marks].sort((a, b) => b.length - a.length).map(writtenAs);
    this.overlap = Math.max(0, ...this.#needles.map(({ text }) => text.length * LONGEST_ESCAPE));
  }

  /** Whether any id stands in these bytes. */
  finds(bytes: Buffer): boolean {
    return this.#standing(bytes).next().done !== true;
  }

  /** The requests whose ids stand in these bytes. */
  requestsIn(bytes: Buffer): readonly string[] {
    return [...new Set(this.#standing(bytes))];
  }

  /** The text without the ids, in whatever way their characters are written: a name for the record. */
  redact(text: string): string {
    return this.#written.reduce((left, pattern) => left.replace(pattern, '*'), text);
  }

  *#standing(hay: Buffer): Generator<string> {
    const folded = fold(hay);
    for (const { bytes, request } of this.#needles) if (folded.includes(bytes)) yield request;
    // Most bytes are one text only, and that has been looked at.
    if (!hay.includes(BACKSLASH) && !hay.includes(0)) return;
    for (const text of textsOf(hay)) {
      const lower = text.toLowerCase();
      for (const needle of this.#needles) if (lower.includes(needle.text)) yield needle.request;
    }
  }
}

interface Needle {
  readonly text: string;
  /** Its UTF-8, folded as the bytes it is looked for in. */
  readonly bytes: string;
  readonly request: string;
}

/** Bytes of one character as an escape, the eight layers of it doubling its backslash each time; twice that in UTF-16. */
const LONGEST_ESCAPE = 2 * (2 ** 7 + 5);

/** One character a byte. Needle and hay are folded alike, so that it does not matter what becomes of other bytes. */
function fold(bytes: Buffer): string {
  return bytes.toString('latin1').toLowerCase();
}

/** In any case, and with any of its characters percent-encoded, once or more often. An everyday word counts as a word only, a number as a part of a path. */
function writtenAs(mark: string): RegExp {
  const characters = Array.from(mark, (char) => {
    const bytes = Array.from(Buffer.from(char), (byte) => `%(?:25)*${byte.toString(16).padStart(2, '0')}`);
    return `(?:\\u{${(char.codePointAt(0) ?? 0).toString(16)}}|${bytes.join('')})`;
  }).join('');
  const isDistinct =
    mark.startsWith('"') || marksOf(mark).some((one) => one === mark.toLowerCase() || one === mark);
  if (isDistinct) return new RegExp(characters, 'giu');
  const inside = /^\d+$/.test(mark) ? '[^/=.]' : '[\\p{L}\\p{N}]';
  return new RegExp(`(?:(?<!${inside})|(?<=%[0-9a-f]{2}))${characters}(?!${inside})`, 'giu');
}
