import { expect, onTestFinished, test } from 'vitest';
import { ServiceClient } from '../../../src/history/service/client.ts';
import { serve } from '../../support/listen.ts';

const USER = '00000000-0000-4000-8000-00000000000a';
type Read = (client: ServiceClient) => Promise<unknown>;
const pulls: Read = ({ pulls: group }) => group.status();
const everyPull: Read = ({ pulls: group }) => Array.fromAsync(group.users());
const tests: Read = ({ labs }) => labs.tests();

test.each<readonly [string, Read, string]>([
  ['{}', pulls, 'the answer has no list data'],
  ['{"data":null}', everyPull, 'the answer has no list data'],
  [`{"data":[{"user_id":"${USER}"}]}`, pulls, `the pulls of ${USER} have no provider`],
  [`{"data":[{"user_id":"${USER}","provider":[]}]}`, everyPull, `the pulls of ${USER} have no provider`],
  [
    `{"data":[{"user_id":"${USER}","provider":{"made_up":{}}}]}`,
    pulls,
    `the pulls of ${USER} have no made_up.pulled`,
  ],
  ['{"data":[{"provider":{}}]}', everyPull, 'an item of the answer has no user_id'],
  ['{}', tests, 'the answer has no list data'],
  ['{"data":null}', tests, 'the answer has no list data'],
])('%s lacks a member, and is an error with its name', async (body, read, said) => {
  const baseUrl = await serve((_, answer) => answer.setHeader('content-type', 'application/json').end(body));
  const client = new ServiceClient({ baseUrl, apiKey: 'made-up' });
  onTestFinished(() => client.close());
  await expect(read(client)).rejects.toMatchObject({ code: 'answer_malformed', detail: said });
});

test('an answer without lab accounts has no list', async () => {
  const baseUrl = await serve((_, answer) => answer.setHeader('content-type', 'application/json').end('{}'));
  const client = new ServiceClient({ baseUrl, apiKey: 'made-up' });
  onTestFinished(() => client.close());
  expect((await client.labs.accounts()).data).toEqual([]);
});
