import { workerData } from 'node:worker_threads';
import { ENTRY_BYTES } from '../../core/receipt.ts';
import { asBuffer } from '../../lib/byte-writer.ts';
import { answerJobs } from '../../lib/thread-pool.ts';
import type { Done, Job, LogDocument, Opening } from './job.ts';
import { LogWriter } from './log-files.ts';
import { LogReader } from './log-reader.ts';
import { openCheckpoint, readSigner, verifierText } from './note.ts';
import { hashesIn, TILE_WIDTH, tilePath, widthOf } from './tiles.ts';

const TEXT = 'text/plain; charset=utf-8';
const BYTES = 'application/octet-stream';
/** C2SP tlog-tiles: `tile/0/x001/067`, `tile/entries/067.p/12`. */
const TILE = /^tile\/(entries|[0-5])\/((?:x\d{3}\/){0,4}\d{3})(?:\.p\/(\d{1,3}))?$/;

/** The thread of the log: receiving and delivering do not wait for its hashing and syncing. */
const { folder, origin, pem } = workerData as Opening;
const signer = readSigner(origin, pem);
let opened: Promise<LogWriter> | null = null;

const reader = new LogReader(folder);

async function perform(job: Job): Promise<Done> {
  // Leaves the log as it is.
  if (job.kind === 'find') return { size: 0, found: await findDocument(job.path) };
  try {
    opened ??= LogWriter.open(folder, signer, job.kind === 'open' ? job.before : undefined);
    const log = await opened;
    if (job.kind === 'append') log.append(asBuffer(job.entries));
    if (job.kind === 'sign') await log.checkpoint();
    return { size: log.size, hasMadeHashes: log.hasMadeHashes };
  } catch (error) {
    // The next job opens it again, as far as it was signed.
    void opened?.then((log) => log.close()).catch(() => undefined);
    opened = null;
    throw error;
  }
}

answerJobs(perform);

/**
 * A document of the log (C2SP tlog-tiles): `checkpoint`, `tile/…`, `key`, or `N`, which proves entry N
 * (c2sp.org/tlog-proof@v1). All of it is public: without the salts it says nothing.
 * @returns null when there is none of that name, or none yet
 */
async function findDocument(path: string): Promise<LogDocument | null> {
  if (path === 'key') return text(`${verifierText(signer)}\n`);
  const checkpoint = reader.checkpoint();
  if (checkpoint === null) return null;
  if (path === 'checkpoint') return text(checkpoint);
  const head = openCheckpoint(checkpoint, signer);
  if (head === null) return null;
  if (/^(0|[1-9]\d{0,14})$/.test(path)) {
    const proof = await reader.proof(Number(path));
    return proof === null ? null : text(proof);
  }
  return tileDocument(path, head.size);
}

function tileDocument(path: string, size: number): LogDocument | null {
  const [, what, name = '', part] = TILE.exec(path) ?? [];
  if (what === undefined) return null;
  const kind = what === 'entries' ? what : Number(what);
  const level = kind === 'entries' ? 0 : kind;
  const index = Number(name.replaceAll(/[x/]/g, ''));
  const width = part === undefined ? TILE_WIDTH : Number(part);
  // Readers may keep a tile for ever, so it has one name only.
  if (path !== tilePath(kind, index, width) || width < 1 || width > widthOf(level, index, size)) return null;
  const body =
    kind === 'entries'
      ? bundle(reader.entries(index * TILE_WIDTH, width))
      : reader.tile({ level, index, width });
  return { type: BYTES, body, isFixed: true };
}

function text(body: string): LogDocument {
  return { type: TEXT, body, isFixed: false };
}

/** Entries, each behind its length in two bytes, big-endian. */
function bundle(entries: Buffer): Buffer {
  const length = Buffer.of(0, ENTRY_BYTES);
  return Buffer.concat(hashesIn(entries).flatMap((entry) => [length, entry]));
}
