import { createHash } from 'node:crypto';
import { rename, stat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { PassThrough, type Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip, createZstdCompress } from 'node:zlib';
import { fileLines } from '../archive/file-lines.ts';
import type { IdSearch } from '../core/id-search.ts';
import { CREATE_NEW, openPlain, syncFolder, writeAll } from '../lib/durable.ts';
import { Contents } from './contents.ts';
import type { LineOwners } from './file-kinds.ts';
import { mayHold } from './search-file.ts';
import { temporaryPath } from './temporary.ts';

const CHUNK = 256 * 1024;
const LINE_FEED = Buffer.from('\n');
/** As the sink that wrote the file. */
const GZIP_LEVEL = 4;

/** What rewriting a file comes to, before anything has happened to the file itself. */
export interface Rewrite {
  /** Lines taken out, by request. */
  readonly removed: Readonly<Record<string, number>>;
  readonly lines: number;
  readonly before: string;
  /** Null when no line is left, and the file is to go. */
  readonly after: { readonly sha256: string; readonly bytes: number } | null;
  /** Of what is left. */
  readonly contents: Contents;
}

/**
 * Writes the file anew beside itself, synced, without the lines that fall under a request. Every other line keeps its
 * bytes. `commitRewrite` puts it in place.
 * @returns null when there was nothing to take out
 */
export async function rewriteLines(
  path: string,
  owners: LineOwners,
  search: IdSearch,
  signal: AbortSignal,
): Promise<Rewrite | null> {
  const removed = new Map<string, number>();
  const contents = new Contents();
  const before = createHash('sha256');
  const after = createHash('sha256');
  const temporary = temporaryPath(path);
  await unlink(temporary).catch(() => undefined);
  const { mode, uid, gid } = await stat(path);
  const target = await openPlain(temporary, CREATE_NEW);
  let lines = 0;
  let kept = 0;
  let bytes = 0;
  const keep = async function* (): AsyncGenerator<Buffer> {
    for await (const batch of fileLines(path, (chunk) => before.update(chunk))) {
      const pieces: Buffer[] = [];
      for (const { number, bytes: line, ended } of batch) {
        if (line === null) throw new Error(`line ${number} is too long to be looked at`);
        const requests = mayHold(line, search) ? owners.ofLine(line) : [];
        if (requests.length > 0) {
          lines += 1;
          for (const request of requests) removed.set(request, (removed.get(request) ?? 0) + 1);
          continue;
        }
        kept += 1;
        contents.add(line);
        pieces.push(line);
        if (ended) pieces.push(LINE_FEED);
      }
      if (pieces.length > 0) yield Buffer.concat(pieces);
    }
  };
  try {
    // Whoever could read the file still can; giving it back to another owner takes the right to.
    await target.chmod(mode & 0o777);
    await target.chown(uid, gid).catch(() => undefined);
    await pipeline(
      keep,
      compressorFor(path),
      async (chunks: AsyncIterable<Buffer>) => {
        for await (const chunk of chunks) {
          after.update(chunk);
          await writeAll(target, chunk, bytes);
          bytes += chunk.length;
        }
      },
      { signal },
    );
    await target.sync();
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  } finally {
    await target.close();
  }
  if (lines === 0 || kept === 0) await unlink(temporary);
  if (lines === 0) return null;
  return {
    removed: Object.fromEntries(removed),
    lines,
    before: before.digest('hex'),
    after: kept === 0 ? null : { sha256: after.digest('hex'), bytes },
    contents,
  };
}

/** Puts the rewritten file in place of the old one, or removes it when nothing is left; durable once it resolves. */
export async function commitRewrite(path: string, { after }: Pick<Rewrite, 'after'>): Promise<void> {
  if (after === null) await unlink(path);
  else await rename(temporaryPath(path), path);
  await syncFolder(dirname(path));
}

function compressorFor(path: string): Duplex {
  if (path.endsWith('.gz')) return createGzip({ chunkSize: CHUNK, level: GZIP_LEVEL });
  return path.endsWith('.zst') ? createZstdCompress({ chunkSize: CHUNK }) : new PassThrough();
}
