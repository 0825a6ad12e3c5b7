import { jsonIn } from '../../lib/parsed.ts';
import { decodeStretches, encodeStretches, type Stretch } from '../../lib/stretches.ts';
import type { Destination, HandedOver, Progress } from './settled-offsets.ts';

/** What brokers take beside an offset: `offset.metadata.max.bytes` less a little. */
const MOST = 4000;
/** Begins the text, so that nobody else's is taken for one. */
const MARK = 'ahead: ';

/**
 * What is settled ahead of an offset, as it is committed beside it. What has no room is sent again. It names the offset that it
 * counts from: who takes a group to another cluster may take the text along, and the offset that is next there.
 */
export function encodeAhead({ offset, ahead }: Progress): string {
  const lanes = Array.from(ahead, ([destination, stretches]) => {
    const words = encodeStretches(offset, stretches, MOST);
    return { destination, stretches, words, around: textOf(destination, '').length + ','.length };
  })
    .filter(({ words }) => words !== '')
    .toSorted((one, other) => one.words.length + one.around - other.words.length - other.around);
  const written = [String(offset)];
  let room = MOST - MARK.length - `[${offset}]`.length;
  // The short ones first: each may take its share of what is left.
  for (const [index, { destination, stretches, words, around }] of lanes.entries()) {
    const share = Math.floor(room / (lanes.length - index)) - around;
    const fitting = words.length <= share ? words : encodeStretches(offset, stretches, share);
    if (fitting === '') continue;
    written.push(textOf(destination, fitting));
    room -= fitting.length + around;
  }
  return written.length === 1 ? '' : `${MARK}[${written.join(',')}]`;
}

/** In ASCII: what brokers limit is called bytes, whatever they count. */
function textOf(destination: Destination, words: string): string {
  return JSON.stringify([destination, words]).replaceAll(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** @returns with nothing ahead for a text that says nothing of the kind, or was written for another offset */
export function decodeAhead(offset: number, text: string): HandedOver {
  const ahead = new Map<Destination, readonly Stretch[]>();
  const [from, ...lanes] = wordsIn(text);
  if (from !== offset) return { offset, ahead };
  for (const lane of lanes) {
    const [destination, words] = Array.isArray(lane) ? (lane as unknown[]) : [];
    if ((destination !== null && typeof destination !== 'string') || typeof words !== 'string') continue;
    ahead.set(destination, decodeStretches(offset, words) ?? []);
  }
  return { offset, ahead };
}

function wordsIn(text: string): readonly unknown[] {
  if (!text.startsWith(MARK)) return [];
  const words = jsonIn(text.slice(MARK.length));
  return Array.isArray(words) ? words : [];
}
