import { jsonIn } from '../../lib/parsed.ts';
import { decodeStretches, encodeStretches, type Stretch } from '../../lib/stretches.ts';
import type { Checkpoint, CommittedCheckpoint, Destination } from './settled-offsets.ts';

/** Bytes that brokers accept beside an offset: `offset.metadata.max.bytes` less a few. */
const MOST = 4000;
/** Begins the text, so that the text of another program is not read as ours. */
const MARK = 'ahead: ';

/**
 * The text that is committed beside an offset: what is settled ahead of it. What has no room is sent again. The text names
 * the offset that it counts from: a tool that copies a group to another cluster may copy the text as well, with the offset
 * of that cluster.
 */
export function encodeAhead({ offset, ahead }: Checkpoint): string {
  const parts = Array.from(ahead, ([destination, stretches]) => {
    const words = encodeStretches(offset, stretches, MOST);
    return { destination, stretches, words, around: textOf(destination, '').length + ','.length };
  })
    .filter(({ words }) => words !== '')
    .toSorted((one, other) => one.words.length + one.around - other.words.length - other.around);
  const written = [String(offset)];
  let room = MOST - MARK.length - `[${offset}]`.length;
  // The short ones first: what they leave of their share is for the long ones.
  for (const [index, { destination, stretches, words, around }] of parts.entries()) {
    const share = Math.floor(room / (parts.length - index)) - around;
    const kept = words.length <= share ? words : encodeStretches(offset, stretches, share);
    if (kept === '') continue;
    written.push(textOf(destination, kept));
    room -= kept.length + around;
  }
  return written.length === 1 ? '' : `${MARK}[${written.join(',')}]`;
}

/** ASCII only: brokers may count characters or bytes. */
function textOf(destination: Destination, words: string): string {
  return JSON.stringify([destination, words]).replaceAll(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** @returns nothing ahead for a text of another program, or for another offset */
export function decodeAhead(offset: number, text: string): CommittedCheckpoint {
  const ahead = new Map<Destination, readonly Stretch[]>();
  const parsed = text.startsWith(MARK) ? jsonIn(text.slice(MARK.length)) : null;
  const [from, ...parts]: readonly unknown[] = Array.isArray(parsed) ? parsed : [];
  if (from !== offset) return { offset, ahead };
  for (const part of parts) {
    const [destination, words] = Array.isArray(part) ? (part as unknown[]) : [];
    if ((destination !== null && typeof destination !== 'string') || typeof words !== 'string') continue;
    ahead.set(destination, decodeStretches(offset, words) ?? []);
  }
  return { offset, ahead };
}
