/** A stretch of numbers: from the first, up to before `to`. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

const BASE = 36;

/**
 * Stretches as words: how far it is to the next, how long that is, and so on.
 * @param at what the first distance is counted from
 * @param stretches ascending, none touching the next
 * @param most characters; what has no room is left out
 */
export function encodeStretches(at: number, stretches: Iterable<Stretch>, most: number): string {
  let text = '';
  for (const { from, to } of stretches) {
    const space = text === '' ? '' : ' ';
    const next = `${text}${space}${(from - at).toString(BASE)} ${(to - from).toString(BASE)}`;
    if (next.length > most) break;
    text = next;
    at = to;
  }
  return text;
}

/** Null for a text that is no such words. */
export function decodeStretches(at: number, text: string): readonly Stretch[] | null {
  const lengths = text === '' ? [] : text.split(' ').map((each) => Number.parseInt(each, BASE));
  const stretches: Stretch[] = [];
  for (let index = 0; index + 1 < lengths.length; index += 2) {
    const from = at + (lengths[index] ?? 0);
    at = from + (lengths[index + 1] ?? 0);
    if (!Number.isSafeInteger(at)) return null;
    stretches.push({ from, to: at });
  }
  return stretches;
}

/** Whether a number lies in one of them. @param stretches ascending */
export function isWithin(stretches: readonly Stretch[], number: number): boolean {
  let [low, high] = [0, stretches.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((stretches[middle]?.to ?? 0) <= number) low = middle + 1;
    else high = middle;
  }
  return (stretches[low]?.from ?? Number.POSITIVE_INFINITY) <= number;
}
