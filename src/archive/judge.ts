import { isCompaction, type ErasureLine, type ManifestLine } from '../core/archive-manifest.ts';
import type { Receipts } from '../core/proof.ts';
import { checkSigned } from '../core/signature.ts';
import type { DifferenceCode } from './report.ts';

/** One line of a manifest as it lies there. */
export interface StoredLine {
  /** Counted from 1. */
  readonly number: number;
  readonly text: Buffer;
  /** Null when it is no line of a manifest. */
  readonly entry: ManifestLine | null;
  /** False for a last line that was cut short. */
  readonly ended: boolean;
}

/** What the lines of a manifest are judged by. */
export interface Trust {
  /** Public keys whose lines count; empty where none is known: then only that of the first signed line does. */
  readonly keys: ReadonlySet<string>;
  /** Null where they are not at hand. */
  readonly receipts: Receipts | null;
}

/** Lines by what signs them. `unsigned` are those before the first signed one, which vouches for them. */
export interface LineCounts {
  signed: number;
  unsigned: number;
  /** The public keys that signed, each with whether it is one that was given. */
  readonly keys: Map<string, boolean>;
}

/** What is wrong with a line, if anything. */
export type Verdict = readonly [code: DifferenceCode, detail: string] | null;

const SIGNED_BY = /,"signed_by":"([\w-]{43})","signature":"[\w-]+"\}$/;

/** Tells lines of the archive's writers from those of somebody who has the disk and not the key. Lines come in order. */
export class LineJudge {
  readonly counts: LineCounts = { signed: 0, unsigned: 0, keys: new Map() };
  readonly #trust: Trust | null;

  /** @param trust null: lines are only looked at where that is cheap, and lines that take files away */
  constructor(trust: Trust | null) {
    this.#trust = trust;
  }

  judge({ text, entry }: StoredLine): Verdict {
    const line = text.toString();
    const erasure = entry !== null && 'erasure' in entry ? entry : null;
    // Both say that files which were there do not count.
    const takesAway = erasure !== null || (entry !== null && isCompaction(entry));
    if (this.#trust === null && !takesAway) return this.#glance(line);
    const { state, by } = checkSigned('manifest', line);
    if (state === 'invalid')
      return ['line_forged', 'its signature is invalid: the line was changed, or written without the key'];
    return (state === 'unsigned' ? this.#unsigned() : this.#signed(by)) ?? this.#receipts(erasure);
  }

  #glance(line: string): Verdict {
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

  /** An erasure counts only with its receipt, which says the same of the same file. */
  #receipts(line: ErasureLine | null): Verdict {
    const receipts = this.#trust?.receipts ?? null;
    if (line === null || receipts === null) return null;
    for (const id of line.erasure.split(',')) {
      const receipt = receipts.of(id);
      const where = `${receipts.folder}/${id}.json`;
      if (receipt.state === 'under_way') continue;
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

/** Whether a receipt means this file: it names it from further up, and has `*` where an id stood. */
function isNameOf(file: string, item: string): boolean {
  if (item === file || item.endsWith(`/${file}`)) return true;
  if (!item.includes('*')) return false;
  const parts = item.split('/');
  const own = file.split('/');
  const tail = parts.slice(-own.length);
  return parts.length >= own.length && tail.every((part, at) => fits(own[at] ?? '', part.split('*')));
}

/** Whether these stand in a text in this order, the first at its start and the last at its end. */
function fits(text: string, [first = '', ...rest]: readonly string[]): boolean {
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
