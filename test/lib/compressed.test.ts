import { gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { decompress, formatIn, type Format } from '../../src/lib/compressed.ts';

const [ONE, TWO] = [Buffer.from(`one ${'made up '.repeat(3000)}\n`), Buffer.from('two\n')];
const BOTH = Buffer.concat([ONE, TWO]);

function skippable(bytes: number): Buffer {
  const frame = Buffer.alloc(8 + bytes, 0x28);
  frame.writeUInt32LE(0x184d2a53, 0);
  frame.writeUInt32LE(bytes, 4);
  return frame;
}

/** In chunks of so many bytes. */
async function read(format: Format, bytes: Buffer, size: number): Promise<Buffer> {
  const chunks = async function* (): AsyncGenerator<Buffer> {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    await Promise.resolve();
  };
  return Buffer.concat(await Array.fromAsync(decompress(format, chunks(), 1024)));
}

const [g1, g2] = [gzipSync(ONE), gzipSync(TWO)];
const [z1, z2] = [zstdCompressSync(ONE), zstdCompressSync(TWO)];
/** With an extra field, a name, a comment and a check sum of the header. */
const named = Buffer.concat([
  Buffer.from([0x1f, 0x8b, 8, 2 | 4 | 8 | 16, 0, 0, 0, 0, 0, 3, 2, 0, 1, 2]),
  Buffer.from('name\0comment\0'),
  Buffer.from([0, 0]),
  g1.subarray(10),
]);

test.each([
  ['two members', 'gzip', [g1, g2], BOTH],
  ['a member with all that a header can have', 'gzip', [named, g2], BOTH],
  ['zeros behind the end', 'gzip', [g1, Buffer.alloc(5000)], ONE],
  ['a line feed between members', 'gzip', [g1, Buffer.from('\n'), g2, Buffer.from('\n')], BOTH],
  ['two frames', 'zstd', [z1, z2], BOTH],
  ['a skippable frame between two', 'zstd', [z1, skippable(3000), z2], BOTH],
  ['a skippable frame in front and behind', 'zstd', [skippable(0), z1, z2, skippable(5)], BOTH],
  ['nothing in its frame', 'zstd', [zstdCompressSync('')], Buffer.alloc(0)],
] as const)('%s (%s)', async (_, format, parts, text) => {
  const bytes = Buffer.concat(parts);
  expect(formatIn(bytes)).toBe(format);
  for (const size of [1, 7, z1.length, g1.length, 4096, bytes.length])
    expect((await read(format, bytes, size)).equals(text)).toBe(true);
});

test.each([
  ['a member that is cut', 'gzip', [g1.subarray(0, -9)]],
  ['a check sum that is cut', 'gzip', [g1.subarray(0, -3)]],
  ['another check sum', 'gzip', [g1.subarray(0, -8), Buffer.alloc(8, 1)]],
  ['what is no member behind one', 'gzip', [g1, Buffer.from('\nmade up')]],
  ['a frame that is cut', 'zstd', [z1, z2.subarray(0, -1)]],
  ['a skippable frame that is cut', 'zstd', [z1, skippable(50).subarray(0, 30)]],
  ['what is no frame behind one', 'zstd', [z1, Buffer.from('made up')]],
  ['three bytes behind a frame', 'zstd', [z1, Buffer.from('abc')]],
] as const)('%s is an error (%s)', async (_, format, parts) => {
  const bytes = Buffer.concat(parts);
  for (const size of [1, 7, z1.length, g1.length, bytes.length])
    await expect(read(format, bytes, size)).rejects.toThrow(
      /end of file|header|check sum|descriptor|prefix|data/i,
    );
});

async function* failing(): AsyncGenerator<Buffer> {
  yield z1.subarray(0, 10);
  await Promise.reject(new Error('the disk is gone'));
}

const reading = async (): Promise<void> => {
  for await (const _ of decompress('zstd', failing(), 1024));
};

test('an error of the source is that error', async () => {
  await expect(reading()).rejects.toThrow('the disk is gone');
});
