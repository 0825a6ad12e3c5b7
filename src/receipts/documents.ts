import { ENTRY_BYTES } from '../core/receipt.ts';
import type { LogDocument } from './job.ts';
import type { LogReader } from './log-files.ts';
import { openCheckpoint, verifierText, type NoteVerifier } from './note.ts';
import { hashesIn, TILE_WIDTH, tilePath, widthOf } from './tiles.ts';

const TEXT = 'text/plain; charset=utf-8';
const BYTES = 'application/octet-stream';
/** C2SP tlog-tiles: `tile/0/x001/067`, `tile/entries/067.p/12`. */
const TILE = /^tile\/(entries|[0-5])\/((?:x\d{3}\/){0,4}\d{3})(?:\.p\/(\d{1,3}))?$/;

/**
 * The log as its readers see it (C2SP tlog-tiles): `checkpoint`, `tile/…`, `key`, and `N`, which proves entry N
 * (c2sp.org/tlog-proof@v1). Anybody may read all of it: it says nothing to who does not have the salts.
 * @returns null when there is none of that name, or none yet
 */
export async function findDocument(
  path: string,
  reader: LogReader,
  verifier: NoteVerifier,
): Promise<LogDocument | null> {
  if (path === 'key') return text(`${verifierText(verifier)}\n`);
  const checkpoint = reader.checkpoint();
  if (checkpoint === null) return null;
  if (path === 'checkpoint') return text(checkpoint);
  const head = openCheckpoint(checkpoint, verifier);
  if (head === null) return null;
  const { size } = head;
  if (/^(0|[1-9]\d{0,14})$/.test(path)) {
    return textOrNothing(await reader.proof(Number(path)));
  }
  return tileDocument(path, size, reader);
}

function tileDocument(path: string, size: number, reader: LogReader): LogDocument | null {
  const [, what, name = '', part] = TILE.exec(path) ?? [];
  if (what === undefined) return null;
  const kind = what === 'entries' ? what : Number(what);
  const level = kind === 'entries' ? 0 : kind;
  const index = Number(name.replaceAll(/[x/]/g, ''));
  const width = part === undefined ? TILE_WIDTH : Number(part);
  // One name for each: what is kept for ever under another could not be taken back.
  if (path !== tilePath(kind, index, width) || width < 1 || width > widthOf(level, index, size)) return null;
  const body =
    kind === 'entries'
      ? bundle(reader.entries(index * TILE_WIDTH, width))
      : reader.tile({ level, index, width });
  return { type: BYTES, body, isFixed: true };
}

const text = (body: string): LogDocument => ({ type: TEXT, body, isFixed: false });

const textOrNothing = (body: string | null): LogDocument | null => (body === null ? null : text(body));

/** Each entry behind its length, two bytes, big-endian. */
function bundle(entries: Buffer): Buffer {
  const length = Buffer.of(0, ENTRY_BYTES);
  return Buffer.concat(hashesIn(entries).flatMap((entry) => [length, entry]));
}
