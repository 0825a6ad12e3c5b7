import { MillraceError, messageOf } from '../../core/errors.ts';
import { ENTRY_BYTES } from '../../core/receipt.ts';
import { LogReader } from './log-reader.ts';
import { parseVerifier, type NoteVerifier } from './note.ts';
import { TILE_WIDTH, tilePath, TreeReader } from './tiles.ts';

/** A log to read: `LogReader` for its folder, or the address where its receiver shows it. */
export interface LogSource {
  readonly name: string;
  /** Whether there is a log; it may have signed nothing yet. */
  exists(): boolean | Promise<boolean>;
  /** Key as the log itself says it, to be trusted no more than the log; null when it does not say. */
  key(): NoteVerifier | null | Promise<NoteVerifier | null>;
  /** The signed note; null before the first. */
  checkpoint(): string | null | Promise<string | null>;
  /** Entries from `from`, a multiple of 256; fewer than `count` where the log ends. */
  entries(from: number, count: number): Buffer | Promise<Buffer>;
  /** Proof of an entry under the current checkpoint; null when the log does not have it yet. */
  proof(index: number): Promise<string | null>;
  /** Root of the first `size` entries. @throws when the log has fewer */
  rootAt(size: number): Promise<Buffer>;
}

/** @param place a folder, or `http://receiver:8080/receipts` */
export function openLog(place: string): LogSource {
  return /^https?:/.test(place) ? new RemoteLog(place) : new LogReader(place);
}

/** @throws MillraceError receipts_unusable when there is none */
export async function openExistingLog(place: string): Promise<LogSource> {
  const log = openLog(place);
  if (!(await log.exists())) throw new MillraceError('receipts_unusable', `${place}: there is no log`);
  return log;
}

class RemoteLog implements LogSource {
  readonly name: string;
  readonly #base: URL;

  constructor(address: string) {
    this.name = address;
    this.#base = new URL(address.endsWith('/') ? address : `${address}/`);
  }

  async exists(): Promise<boolean> {
    return (await this.checkpoint()) !== null || (await this.key()) !== null;
  }

  async key(): Promise<NoteVerifier | null> {
    const text = await this.#get('key');
    return text === null ? null : parseVerifier(text.toString());
  }

  async checkpoint(): Promise<string | null> {
    return (await this.#get('checkpoint'))?.toString() ?? null;
  }

  async entries(from: number, count: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let at = from; at < from + count; at += TILE_WIDTH) {
      const width = Math.min(TILE_WIDTH, from + count - at);
      const bundle = await this.#get(tilePath('entries', at / TILE_WIDTH, width));
      if (bundle === null) break;
      for (let place = 0; place < bundle.length; place += ENTRY_BYTES + 2)
        pieces.push(bundle.subarray(place + 2, place + 2 + ENTRY_BYTES));
    }
    return Buffer.concat(pieces);
  }

  async proof(index: number): Promise<string | null> {
    return (await this.#get(String(index)))?.toString() ?? null;
  }

  rootAt(size: number): Promise<Buffer> {
    return new TreeReader(size, async ({ level, index, width }) => {
      const tile = await this.#get(tilePath(level, index, width));
      if (tile === null) throw new RangeError(`the log has fewer than ${size} entries`);
      return tile;
    }).root();
  }

  async #get(path: string): Promise<Buffer | null> {
    try {
      const answer = await fetch(new URL(path, this.#base));
      if (answer.ok) return Buffer.from(await answer.arrayBuffer());
      await answer.body?.cancel();
      if (answer.status === 404) return null;
      throw new Error(`answered ${answer.status}`);
    } catch (error) {
      throw new MillraceError('receipts_unusable', `${this.name}/${path}: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }
}
