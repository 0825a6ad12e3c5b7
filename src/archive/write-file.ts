import type { Stats } from 'node:fs';
import { PassThrough, type Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGzip, createZstdCompress, gzip, zstdCompress } from 'node:zlib';
import type { Compression } from '../core/compression.ts';
import { fillNew, HashedFile } from '../lib/new-file.ts';

const CHUNK = 256 * 1024;
/** On JSON, less than half the time of zlib's default level for 4 to 7 % more bytes. */
const GZIP_LEVEL = 3;

const COMPRESSORS = {
  gzip: () => createGzip({ chunkSize: CHUNK, level: GZIP_LEVEL }),
  zstd: () => createZstdCompress({ chunkSize: CHUNK }),
  none: () => new PassThrough(),
} as const satisfies Record<Compression, () => Duplex>;

/** Owner and permissions of a file. */
export type FileOwner = Pick<Stats, 'mode' | 'uid' | 'gid'>;

/**
 * Writes a file of an archive under a temporary name: on disk once it resolves, removed when it rejects.
 * @param lines whole records with line feeds, in pieces of any size
 * @returns size and hash of the file
 */
export async function writeArchiveFile(
  path: string,
  lines: () => AsyncIterable<Buffer>,
  compression: Compression,
  signal: AbortSignal,
  like?: FileOwner,
): Promise<{ bytes: number; sha256: string }> {
  const file = await fillNew(HashedFile.create(path), async (target) => {
    if (like !== undefined) {
      await target.handle.chmod(like.mode & 0o777);
      // Only root may change the owner.
      await target.handle.chown(like.uid, like.gid).catch(() => undefined);
    }
    const write = async (written: AsyncIterable<Buffer>): Promise<void> => {
      for await (const chunk of written) await target.write(chunk);
    };
    return pipeline(lines, COMPRESSORS[compression](), write, { signal });
  });
  return file.facts();
}

/** The bytes of a file, for lines in memory. */
export const ARCHIVE_BYTES: Readonly<Record<Compression, (lines: Buffer) => Promise<Buffer> | Buffer>> = {
  gzip: (lines) => promisify(gzip)(lines, { level: GZIP_LEVEL }),
  zstd: (lines) => promisify(zstdCompress)(lines),
  none: (lines) => lines,
};
