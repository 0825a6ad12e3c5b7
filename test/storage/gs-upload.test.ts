import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/storage/open.ts';
import { serve } from '../support/listen.ts';
import { storageSettings } from '../support/object-stores/emulators.ts';
import { fileOf, noise } from './contract.ts';

const MIB = 2 ** 20;

/**
 * One object of a store that makes it of an upload's last part, loses that answer, and says from then on that it has all bytes
 * and waits for more, as fake-gcs-server does.
 */
async function forgetful() {
  let begun = 0;
  let resource: Record<string, unknown> = {};
  let bytes = 0;
  let isMade = false;
  const item = (): object => ({
    ...resource,
    size: String(bytes),
    generation: '7',
    updated: '2026-11-21T08:00:00Z',
  });
  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const { method, headers, url = '' } = incoming;
    const body = await buffer(incoming);
    if (method === 'POST') {
      begun += 1;
      resource = JSON.parse(body.toString()) as Record<string, unknown>;
      outgoing.writeHead(200, { location: `http://localhost/upload?upload_id=1` }).end();
    } else if (method === 'DELETE') outgoing.writeHead(499).end();
    else if (method === 'GET' && url.includes('/o/'))
      outgoing.writeHead(isMade ? 200 : 404).end(JSON.stringify(isMade ? item() : {}));
    else if (method === 'GET') outgoing.end('{}');
    else {
      const [, last, total] = /-(\d+)\/(\d+)$/.exec(String(headers['content-range'])) ?? [];
      if (last !== undefined) bytes = Number(last) + 1;
      isMade ||= last !== undefined && bytes === Number(total);
      if (isMade && last !== undefined) outgoing.destroy();
      else outgoing.writeHead(308, { range: `bytes=0-${bytes - 1}` }).end();
    }
  };
  const url = await serve((incoming, outgoing) => {
    handle(incoming, outgoing).catch(() => outgoing.destroy());
  });
  return { url, begun: () => begun };
}

/** Puts an object of 6 MiB into a store at this address. */
async function putLarge(endpoint: string, settings: object): Promise<unknown> {
  const store = await openStore('gs://bucket/prefix', storageSettings({ gs: { endpoint }, ...settings }));
  onTestFinished(() => store.close());
  return store.putIfAbsent('large', await fileOf(noise(6 * MIB)));
}

test('gs: an upload whose last answer was lost, and that seems to wait for more bytes, is found as an object', async () => {
  const { url, begun } = await forgetful();
  const put = await putLarge(url, { partBytes: '5MiB', tries: 3 });
  expect(put).toEqual({ status: 'written', version: '7' });
  expect(begun()).toBe(1);
});

test('gs: parts have a size that the service takes, whatever was configured', async () => {
  const sizes: number[] = [];
  const endpoint = await serve((incoming, outgoing) => {
    void buffer(incoming).then((body) => {
      const [, last, total] = /-(\d+)\/(\d+)$/.exec(String(incoming.headers['content-range'])) ?? [];
      if (incoming.method === 'POST')
        return outgoing.writeHead(200, { location: 'http://localhost/upload?upload_id=1' }).end();
      if (Number(last) + 1 === Number(total))
        return outgoing.end(JSON.stringify({ size: total, generation: '7' }));
      sizes.push(body.length);
      // As Google says it of a part that is not the last.
      const isWhole = body.length % (256 * 1024) === 0;
      return outgoing.writeHead(isWhole ? 308 : 400, isWhole ? { range: `bytes=0-${last}` } : {}).end('{}');
    });
  });
  expect(await putLarge(endpoint, { partBytes: 5_500_000 })).toMatchObject({ status: 'written' });
  expect(sizes).toEqual([5 * MIB]);
});
