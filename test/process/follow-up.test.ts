import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/start.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';

test('a completion becomes exactly that pull, once however often it is repeated, also after a restart', async () => {
  const service = await startSandbox({
    host: '127.0.0.1',
    seed: 'made-up',
    users: 2,
    days: 10,
    mealsPerDay: 2,
  });
  onTestFinished(() => service.stop());
  const [user] = service.state.users.list(service.teamId);
  const folder = await temporaryFolder();
  const history = join(folder, 'history');
  const config = writeConfig(folder, {
    sinks: { history: { type: 'follow-up', path: history, baseUrl: service.url, apiKey: service.apiKey } },
  });
  const completion = (type: string, start: string): Buffer =>
    Buffer.from(
      JSON.stringify({
        event_type: type,
        team_id: service.teamId,
        user_id: user!.id,
        client_user_id: 'made-up',
        data: {
          user_id: user!.id,
          start_date: start,
          end_date: '2026-01-03',
          provider: user!.sources[0],
          is_final: true,
        },
      }),
    );
  const meals = completion('historical.data.meal.created', '2026-01-02');
  const first = await ReceiverProcess.start(config);
  await Promise.all(['a', 'b', 'c'].map((id) => postSigned(first.url, meals, { id: `msg_${id}` })));
  await postSigned(first.url, completion('historical.data.sleep.created', '2026-01-02'), { id: 'msg_sleep' });
  await postSigned(first.url, Buffer.from(meals.toString().replace('start_date', 'began')), {
    id: 'msg_odd',
  });
  await first.drained();
  const { journal } = await first.status();
  expect(journal.deadLetters).toBe(1);
  await first.kill('SIGKILL');
  const second = await ReceiverProcess.start(config);
  await postSigned(second.url, meals, { id: 'msg_d' });
  await second.drained();
  await second.kill('SIGTERM');

  const pulls = readdirSync(history);
  expect(pulls).toHaveLength(1);
  const rows = readFileSync(join(history, pulls[0]!, 'meals.ndjson'), 'utf8')
    .trim()
    .split('\n');
  const days = rows.map((row) => (JSON.parse(row) as { timestamp: string }).timestamp.slice(0, 10));
  expect(new Set(days)).toEqual(new Set(['2026-01-02', '2026-01-03']));
});
