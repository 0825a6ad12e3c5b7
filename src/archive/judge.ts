import { isCompaction, type ErasureLine, type ManifestLine } from '../core/archive-manifest.ts';
import type { Receipts } from '../core/proof.ts';
import { checkSigned } from '../core/signature.ts';
import type { DifferenceCode } from './report.ts';

/** One line of a manifest as stored. */
export interface StoredLine {
  /** Counted from 1. */
  readonly number: number;
  readonly text: Buffer;
  /** Null for an invalid line. */
  readonly entry: ManifestLine | null;
  /** False for a last line that was cut short. */
  readonly ended: boolean;
}

/** Keys and receipts that the lines of a manifest are checked with. */
export interface Trust {
  /** Public keys whose lines count; when empty, the key of the first signed line. */
  readonly keys: ReadonlySet<string>;
  /** Null where they are not available. */
  readonly receipts: Receipts | null;
}

/** `unsigned` are the lines before the first signed one, whose link covers them. */
export interface LineCounts {
  signed: number;
  unsigned: number;
  /** Public keys that signed; true for given ones. */
  readonly keys: Map<string, boolean>;
}

/** The fault of a line; null for a good one. */
export type Verdict = readonly [code: DifferenceCode, detail: string] | null;

const SIGNED_BY = /,"signed_by":"([\w-]{43})","signature":"[\w-]+"\}$/;

/** Finds lines that were written without a key of the archive's writers. Lines come in order. */
export class LineJudge {
  readonly counts: LineCounts = { signed: 0, unsigned: 0, keys: new Map() };
  readonly #trust: Trust | null;

  /** @param trust null checks signatures only of lines that remove files */
  constructor(trust: Trust | null) {
    this.#trust = trust;
  }

  judge({ text, entry }: StoredLine): Verdict {
    const line = text.toString();
    const erasure = entry !== null && 'erasure' in entry ? entry : null;
    // Both make files stop counting.
    const removes = erasure !== null || (entry !== null && isCompaction(entry));
    if (this.#trust === null && !removes) return this.#signerOf(line);
    const { state, by } = checkSigned('manifest', line);
    if (state === 'invalid')
      return ['line_forged', 'its signature is invalid: the line was changed, or written without the key'];
    return (state === 'unsigned' ? this.#unsigned() : this.#signed(by)) ?? this.#receipts(erasure);
  }

  #signerOf(line: string): Verdict {
    const by = SIGNED_BY.exec(line)?.[1];
    return by === undefined ? this.#unsigned() : this.#signed(by);
  }

  #unsigned(): Verdict {
    if (this.counts.signed > 0) return ['line_unsigned', 'is not signed, and lines before it are'];
    this.counts.unsigned += 1;
    return null;
  }

  #signed(by: string): Verdict {
    const { keys, signed } = this.counts;
    const given = this.#trust?.keys.has(by) === true;
    const known = given || ((this.#trust?.keys.size ?? 0) === 0 && (signed === 0 || keys.has(by)));
    if (!known)
      return ['line_untrusted', `signed by ${by}, which is not a known key of this archive; add it if it is`];
    this.counts.signed += 1;
    keys.set(by, given);
    return null;
  }

  /** An erasure counts only with a receipt of the same change. */
  #receipts(line: ErasureLine | null): Verdict {
    const receipts = this.#trust?.receipts ?? null;
    if (line === null || receipts === null) return null;
    for (const id of line.erasure.split(',')) {
      const receipt = receipts.of(id);
      const where = `${receipts.folder}/${id}.json`;
      if (receipt.state === 'in_progress') continue;
      if (receipt.state === 'missing')
        return [
          'receipt_missing',
          `erasure ${id} has no receipt: ${where}; copy it from the receiver that erased`,
        ];
      if (receipt.state === 'forged') return ['receipt_forged', `${where} was changed after it was signed`];
      const says = receipt.items.some(
        ({ item, sha256_after: after }) => after === line.sha256 && isNameOf(line.file, item),
      );
      if (!says) return ['receipt_differs', `${where} does not list such a change to ${line.file}`];
    }
    return null;
  }
}

/** Whether a receipt's item, which may have more levels in front and `*` for ids, names this file. */
function isNameOf(file: string, item: string): boolean {
  if (item === file || item.endsWith(`/${file}`)) return true;
  if (!item.includes('*')) return false;
  const parts = item.split('/');
  const own = file.split('/');
  const tail = parts.slice(-own.length);
  return parts.length >= own.length && tail.every((part, at) => isOrderOf(own[at] ?? '', part.split('*')));
}

/** Whether a text has these parts in this order, the first at its start and the last at its end. */
function isOrderOf(text: string, [first = '', ...rest]: readonly string[]): boolean {
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first)) return false;
  let from = first.length;
  for (const one of rest) {
    const at = text.indexOf(one, from);
    if (at === -1) return false;
    from = at + one.length;
  }
  return text.length - from >= last.length && text.endsWith(last);
}
