/** The numbers from `from` up to and without `to`. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

const BASE = 36;

/**
 * Stretches as text: for each its distance from the end of the previous one and its length, in base 36.
 * @param at from where the first distance counts
 * @param stretches ascending, with gaps between them
 * @param most characters; stretches without room are left out
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

/** Null for an invalid text. */
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

/** True for a number in one of the stretches. @param stretches ascending */
export function isWithin(stretches: readonly Stretch[], number: number): boolean {
  let [low, high] = [0, stretches.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((stretches[middle]?.to ?? 0) <= number) low = middle + 1;
    else high = middle;
  }
  return (stretches[low]?.from ?? Number.POSITIVE_INFINITY) <= number;
}
