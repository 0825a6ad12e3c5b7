import { expect, it } from 'vitest';
import { checkCommand } from '../../src/cli/check/command.ts';
import { temporaryFile } from '../config/helpers.ts';
import { run } from './run.ts';

const TYPOS = `signing: { secrets: ["\${MILLRACE_SECRET}"] }
log: { level: loud }
sinks:
  archive:
    type: files
    path: ./data/archive
    compres: zstd
    rotate: { evry: 1h }
  hubs:
    type: event-hubs
    connectionString: hunter2
    requird: false
  topics: { type: pubsub, project: acme-health, timeout: soon }
sources:
  feed: { type: pubsub, project: acme-health, subscription: events, held: { mesages: 5 } }
  other: { type: pubsb }
`;

it('a typo in the options of a sink or source has its line and a suggestion, beside all other problems', async () => {
  const file = temporaryFile('c.yaml', TYPOS);
  const outcome = await run(checkCommand, ['--config', file]).catch((error: unknown) => error);
  expect(outcome).toMatchObject({ code: 'config_invalid', exit: 2 });
  const detail = String((outcome as { detail?: unknown }).detail);
  expect(detail.replaceAll(file, 'c.yaml').split('\n')).toEqual([
    'c.yaml:2:15: log.level: must be one of trace, debug, info, warn, error, fatal, silent',
    'c.yaml:8:21: sinks.archive.rotate.evry: is not a known key; did you mean sinks.archive.rotate.every?',
    'c.yaml:7:14: sinks.archive.compres: is not a known key; did you mean sinks.archive.compress?',
    'c.yaml:11:23: sinks.hubs.connectionString: must hold Endpoint, SharedAccessKeyName and SharedAccessKey',
    'c.yaml:12:14: sinks.hubs.requird: is not a known key; did you mean sinks.hubs.required?',
    expect.stringMatching(/^c\.yaml:13:\d+: sinks\.topics\.timeout: /),
    expect.stringMatching(
      /^c\.yaml:15:\d+: sources\.feed\.held\.mesages: .*did you mean sources\.feed\.held\.messages/,
    ),
    expect.stringMatching(/^c\.yaml:16:\d+: sources\.other\.type: must be event-hubs or pubsub or kafka/),
  ]);
  expect(detail).not.toContain('hunter2');
});

it.each(['constructor', 'toString'])('a route to %s, which every object has, names no sink', async (name) => {
  const sinks = 'sinks: { archive: { type: files, path: ./data/archive } }';
  const file = temporaryFile('c.yaml', `${sinks}\nroutes: [{ match: "*", to: ${name} }]\n`);
  const outcome = await run(checkCommand, ['--config', file]).catch((error: unknown) => error);
  expect(outcome).toMatchObject({
    code: 'config_invalid',
    detail: `${file}:2:28: routes[0].to[0]: names the sink "${name}", which is not configured; configured are: archive`,
  });
});
