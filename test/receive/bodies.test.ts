import { IncomingMessage } from 'node:http';
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { deliver, EVENT, head, heldJournal, RawClient, signed, start } from './support.ts';

const MIB = 1024 * 1024;
const COMPRESS = {
  gzip: gzipSync,
  'x-gzip': gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
};

describe('the bytes', () => {
  it('fault 25: reach the journal untouched, whatever a parser would make of them', async () => {
    const { url, accepted } = await start();
    const odd =
      '"__proto__":{"polluted":true},"a":1,"a":2,"big":9007199254740993,"zero":-0,"x":1.10,"e":1E400,"s":"\\ud800","2":0,"1":0';
    const body = Buffer.from(EVENT.toString().replace('"data":{}', `\r\n\t"data": {${odd}}`));
    expect((await deliver(url, body)).status).toBe(202);
    expect(accepted[0]?.body.equals(body)).toBe(true);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('fault 24: are quarantined exactly as they came when they are no UTF-8, have a mark, are empty, no object', async () => {
    const { url, quarantined } = await start();
    const invalid = Buffer.from(EVENT);
    invalid[20] = 0xff;
    const cases: [Buffer, string][] = [
      [invalid, 'not_utf8'],
      [Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), EVENT]), 'bom'],
      [Buffer.alloc(0), 'empty'],
      [Buffer.from('[1]'), 'not_object'],
      [Buffer.from('{"a":'), 'not_json'],
    ];
    for (const [body, code] of cases) {
      expect(await deliver(url, body)).toMatchObject({ status: 202, json: { status: 'quarantined', code } });
      expect(quarantined.at(-1)?.event.body.equals(body)).toBe(true);
    }
  });

  it('fault 26: are quarantined when nested 200,000 levels deep, and the process lives', async () => {
    const { url } = await start();
    const body = Buffer.from('['.repeat(200_000) + ']'.repeat(200_000));
    expect(await deliver(url, body)).toMatchObject({ status: 202, json: { code: 'too_deep' } });
    expect((await deliver(url)).status).toBe(202);
  });

  it('are signed before they are compressed', async () => {
    const { url, accepted } = await start();
    for (const [encoding, compress] of Object.entries(COMPRESS)) {
      const sent = compress(EVENT);
      expect((await deliver(url, EVENT, { sent, headers: { 'content-encoding': encoding } })).status).toBe(
        202,
      );
      expect(accepted.at(-1)?.body.equals(EVENT)).toBe(true);
    }
    const identity = await deliver(url, EVENT, { headers: { 'content-encoding': 'identity' } });
    expect(identity.status).toBe(202);
  });

  it('are 400 when they are not what Content-Encoding says, or more than that, and 415 for an unknown encoding', async () => {
    const { url } = await start({ limits: { unverifiedBytes: 0 } });
    for (const [encoding, compress] of Object.entries(COMPRESS)) {
      const whole = compress(EVENT);
      const trailing = Buffer.concat([whole, Buffer.from(' ')]);
      for (const sent of [EVENT, whole.subarray(0, -6), trailing, Buffer.alloc(0)]) {
        const answer = await deliver(url, EVENT, { sent, headers: { 'content-encoding': encoding } });
        expect(answer).toMatchObject({ status: 400, json: { code: 'body_malformed' } });
      }
    }
    for (const encoding of ['compress', 'gzip, gzip', 'rot13']) {
      const answer = await deliver(url, EVENT, { headers: { 'content-encoding': encoding } });
      expect(answer).toMatchObject({ status: 415, json: { code: 'encoding_unsupported' } });
    }
  });
});

describe('the limit', () => {
  it('fault 20: holds after decompression', async () => {
    const { url, accepted } = await start({ limits: { maxBodyBytes: MIB, unverifiedBytes: 0 } });
    const bomb = Buffer.alloc(64 * MIB);
    for (const [encoding, compress] of Object.entries(COMPRESS)) {
      const sent =
        encoding === 'br'
          ? brotliCompressSync(bomb, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })
          : compress(bomb);
      const answer = await deliver(url, EVENT, { sent, headers: { 'content-encoding': encoding } });
      const code = sent.length * 100 < MIB ? 'body_ratio_exceeded' : 'body_too_large';
      expect(answer).toMatchObject({ status: 413, json: { code } });
    }
    expect(accepted).toEqual([]);
  });

  it('fault 20: many small bombs at once take no more memory than there is, and others get through', async () => {
    const { url, outcomes } = await start({
      limits: {
        maxBodyBytes: MIB,
        maxBufferedBytes: MIB + MIB / 2,
        maxDecompressionRatio: 2000,
        unverifiedBytes: 0,
      },
    });
    const sent = gzipSync(Buffer.alloc(MIB));
    const bomb = (): ReturnType<typeof deliver> =>
      deliver(url, EVENT, { sent, headers: { 'content-encoding': 'gzip' } });
    const bombs = await Promise.all(Array.from({ length: 8 }, bomb));
    expect(new Set(bombs.map(({ json }) => json['code']))).toEqual(
      new Set(['signature_invalid', 'overloaded']),
    );
    // All of it has been given back.
    expect(await bomb()).toMatchObject({ status: 401 });
    const small = await deliver(url, EVENT, {
      sent: gzipSync(EVENT),
      headers: { 'content-encoding': 'gzip' },
    });
    expect(small.status).toBe(202);
    expect(outcomes).toHaveLength(10);
  });

  it('fault 20: refuses a zstd frame that asks for a huge window', async () => {
    const { url } = await start();
    const sent = zstdCompressSync(Buffer.alloc(64 * MIB), { params: { [constants.ZSTD_c_windowLog]: 26 } });
    const answer = await deliver(url, EVENT, { sent, headers: { 'content-encoding': 'zstd' } });
    expect(answer).toMatchObject({ status: 400, json: { code: 'body_malformed' } });
  });

  it('fault 21: answers 413 to a declared 50 MB before any of it is read, and closes', async () => {
    const { port, outcomes, nextOutcome } = await start({ limits: { lingerTimeout: 50 } });
    const client = new RawClient(port);
    client.socket.write(head({ ...signed(EVENT), 'content-length': 50_000_000 }));
    await nextOutcome();
    await client.closed;
    expect(client.status).toBe(413);
    expect(client.text).toMatch(/connection: close/i);
    expect(outcomes[0]?.info.bodyBytes).toBe(0);
  });

  it('fault 21: a sender that writes all of its 50 MB first still gets its 413', async () => {
    const { url } = await start();
    expect(await deliver(url, Buffer.alloc(50_000_000, 0x20))).toMatchObject({ status: 413 });
  });

  it('fault 21: a sender that waits for `100 Continue` is refused before its body', async () => {
    const { port } = await start({ limits: { lingerTimeout: 50 } });
    const big = new RawClient(port);
    big.socket.write(head({ ...signed(EVENT), 'content-length': 50_000_000, expect: '100-continue' }));
    await big.closed;
    expect(big.status).toBe(413);
    const small = new RawClient(port);
    small.socket.write(head({ ...signed(EVENT), 'content-length': EVENT.length, expect: '100-continue' }));
    await small.until(/100 Continue/);
    small.socket.write(EVENT);
    await small.until(/accepted/);
    expect(small.text).toMatch(/ 202 /);
    const old = new RawClient(port);
    const headers = { ...signed(EVENT), 'content-length': EVENT.length, expect: '100-continue' };
    old.socket.write(head(headers, 'POST /webhooks HTTP/1.0'));
    old.socket.write(EVENT);
    await old.closed;
    expect(old.text).not.toContain('100 Continue');
    expect(old.status).toBe(202);
  });

  it('fault 21: cuts off endless chunks, and holds no more than the limit of them', async () => {
    const { port, nextOutcome, accepted } = await start({ limits: { maxBodyBytes: MIB, lingerTimeout: 50 } });
    const client = new RawClient(port);
    const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, 0x20), Buffer.from('\r\n')]);
    client.socket.write(head({ ...signed(EVENT), 'transfer-encoding': 'chunked' }));
    const write = (): void => {
      while (client.socket.writable && client.socket.write(chunk));
    };
    client.socket.on('drain', write);
    write();
    expect(await nextOutcome()).toMatchObject({ code: 'body_too_large' });
    await client.closed;
    expect(client.status).toBe(413);
    expect(accepted).toEqual([]);
  });

  it('faults 21 and 57: refuses very many very small pieces, costs nothing more for those behind, and serves the next sender', async () => {
    const { port, url, nextOutcome } = await start({ limits: { lingerTimeout: 50 } });
    const push = vi.spyOn(IncomingMessage.prototype, 'push');
    onTestFinished(() => push.mockRestore());
    const client = new RawClient(port);
    const pieces = '1\r\n \r\n'.repeat(4090) + '0\r\n\r\n';
    client.socket.write(head({ ...signed(EVENT), 'transfer-encoding': 'chunked' }) + pieces);
    expect(await nextOutcome()).toMatchObject({ code: 'body_in_pieces' });
    await client.closed;
    expect(client.status).toBe(400);
    expect(push.mock.calls.filter(([chunk]) => chunk !== null)).toHaveLength(65);
    // Its parser is used again.
    expect((await deliver(url)).status).toBe(202);
  });

  it('fault 21: refuses bodies that together are too much, and takes the next one when there is room again', async () => {
    const { release, ingest } = heldJournal();
    const { url, nextOutcome } = await start({
      limits: { maxBufferedBytes: 3 * EVENT.length + 512 },
      ingest,
    });
    const padded = Buffer.concat([EVENT, Buffer.alloc(EVENT.length, 0x20)]);
    const first = deliver(url, padded);
    const second = deliver(url, padded);
    expect(await nextOutcome()).toMatchObject({ code: 'overloaded' });
    release();
    const answers = await Promise.all([first, second]);
    expect(answers.map((answer) => answer.status).toSorted((a, b) => a - b)).toEqual([202, 503]);
    expect((await deliver(url)).status).toBe(202);
  });
});
