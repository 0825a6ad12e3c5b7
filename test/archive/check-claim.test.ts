import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { readClaim } from '../../src/archive/check-file.ts';

const FILE = 'claim-checks/acme/2026-11-21/made-up.json.gz';
const PACKED = gzipSync('{"made":"up"}');

/** Read twice: as it lies there, and to unpack it. */
function placeThat(onSecond: () => Buffer) {
  let reads = 0;
  return {
    chunks: async function* () {
      yield await Promise.resolve((reads += 1) === 1 ? PACKED : onSecond());
    },
  };
}

it('a kept event whose reading is stopped is not reported as damaged', async () => {
  const stop = new AbortController();
  const place = placeThat(() => {
    stop.abort();
    throw new Error('the read was stopped');
  });
  await expect(readClaim(place, FILE, stop.signal)).rejects.toThrow(/stopped|aborted/);
});

it('one that cannot be unpacked is', async () => {
  const place = placeThat(() => Buffer.from('not gzip'));
  expect(await readClaim(place, FILE)).toMatchObject({ bodySha256: null, bytes: PACKED.length });
});
