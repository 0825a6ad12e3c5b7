import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Place } from '../support/place.ts';
import { expectConserved } from '../support/read-back.ts';
import { until } from '../support/until.ts';

const type = join(import.meta.dirname, 'gated-sink.ts');

test.each([
  ['says neither yes nor no when it is opened', { opens: 'never' }],
  ['cannot be opened', { opens: 'with an error' }],
  ['takes nothing', { shut: 'fails' }],
])(
  'fault 11: a sink that %s stops no other one, and has a backlog of what waits for it alone, also when nothing runs',
  async (_, trouble) => {
    const place = await Place.make((folder) => ({
      sinks: { down: { type, folder, ...trouble }, archive: { type: 'files', path: `${folder}/archive` } },
      routes: [
        { match: 'labtest.', to: ['down'] },
        { match: '*', to: ['archive'] },
      ],
    }));
    const receiver = await place.start();
    const waiting = await receiver.send(4, 0, 'labtest.order.created');
    const others = await receiver.send(36, 4, 'daily.data.meal.created');
    const shown = async (): Promise<unknown> => {
      const { journal } = await place.json('status');
      return Object.fromEntries(
        (journal.cursors as { sink: string; backlog: number }[]).map(({ sink, backlog }) => [sink, backlog]),
      );
    };
    const backlogs = { archive: 0, down: waiting.size };
    await until('the archive to be done', async () => ((await shown()) as { archive: number }).archive === 0);
    expect(await shown()).toEqual(backlogs);
    await receiver.stop();
    expect(await shown()).toEqual(backlogs);
    expectConserved(await place.archived(), others);
  },
);
