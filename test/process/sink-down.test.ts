import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startEndpoint } from '../sinks/http-support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

test('fault 53: of a sink that never answers, status, metric, readiness and console say the same', async () => {
  const folder = await temporaryFolder();
  const endpoint = await startEndpoint();
  endpoint.reply = () => 'hang';
  const config = writeConfig(folder, {
    delivery: { downAfter: '300ms', retryInitial: '20ms', retryMax: '50ms' },
    sinks: {
      far: {
        type: 'http',
        url: endpoint.url('/'),
        sign: 'none',
        privateNetworks: ['127.0.0.1'],
        timeout: '100ms',
      },
    },
    routes: [{ match: '*', to: ['far'] }],
  });
  const receiver = await Receiver.start(config);
  const { id, body } = madeUpEvent(0);
  expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  const ask = (path: string): Promise<Response> =>
    fetch(new URL(path, receiver.adminUrl), { headers: receiver.authorization });
  /** All that say how it is, each in one word. */
  const said = async (): Promise<unknown[]> => {
    const { checks } = (await (await ask('/readyz?verbose')).json()) as {
      checks: { name: string; ok: boolean; state: string }[];
    };
    const check = checks.find(({ name }) => name === 'sink far');
    const { sinks } = (await (await ask('/api/console')).json()) as { sinks: { mode: string }[] };
    const printed = (await millrace(['status', '--config', config])).stdout;
    return [
      (await receiver.status()).sinks[0]?.mode,
      /^far +(\w+)/m.exec(printed)?.[1],
      check?.state,
      check?.ok,
      sinks[0]?.mode,
      /^millrace_sink_up\{sink="far"\} (\d)$/m.exec(await (await ask('/metrics')).text())?.[1],
    ];
  };
  await until('it to be down', async () => (await receiver.status()).sinks[0]?.mode === 'down');
  await until('all to say so', async () => {
    return JSON.stringify(await said()) === JSON.stringify(['down', 'down', 'down', false, 'down', '0']);
  });
  endpoint.reply = () => 204;
  await until('all to say that it is up', async () => {
    return (
      JSON.stringify(await said()) === JSON.stringify(['running', 'running', 'running', true, 'running', '1'])
    );
  });
  const levels = receiver
    .logLines()
    .flatMap(({ msg }) => (/^sink is (down|up)/.test(String(msg)) ? [msg] : []));
  expect(levels).toEqual(['sink is down', 'sink is up again']);
});
