import { describe } from 'vitest';
import { parseOptions } from '../../src/sinks/http/config.ts';
import { HttpSink } from '../../src/sinks/http/sink.ts';
import { Endpoint, runningContext, SECRET } from './http-support.ts';
import { runContract } from './run-contract.ts';
import { signal } from './support.ts';

describe.each(['standard-webhooks', 'original', 'none'])(
  'http sink, sign %s: the sink contract',
  async (sign) => {
    await runContract(async () => {
      const endpoint = await new Endpoint().start();
      const sink = new HttpSink(
        parseOptions({
          url: endpoint.url('/main'),
          targets: { other: { url: endpoint.url('/other') } },
          sign,
          secrets: sign === 'standard-webhooks' ? [SECRET] : [],
          privateNetworks: ['127.0.0.0/8'],
        }),
        runningContext(),
      );
      return {
        sink,
        destinations: ['other'],
        arrived: () =>
          Promise.resolve(
            endpoint.posts.map(({ path, headers, body }) => ({
              id: String(headers['idempotency-key']),
              destination: path === '/main' ? null : path.slice(1),
              body,
            })),
          ),
        outage: { begin: () => endpoint.stop(), end: async () => void (await endpoint.start()) },
        dispose: async () => {
          await sink.close(signal);
          await endpoint.stop();
        },
      };
    });
  },
);
