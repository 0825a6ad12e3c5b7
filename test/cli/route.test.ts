import { beforeEach, describe, expect, it } from 'vitest';
import type { Io } from '../../src/cli/io.ts';
import { checkCommand } from '../../src/cli/check/command.ts';
import { routeCommand } from '../../src/cli/route.ts';
import { temporaryFile } from '../config/helpers.ts';
import { run } from './run.ts';

const CONFIG = `
sinks: { labs: { type: files }, archive: { type: files } }
routes:
  - { match: labtest., to: ["labs:eu", archive] }
  - { match: daily., to: archive }
`;

let config = '';

beforeEach(() => {
  config = temporaryFile('c.yaml', CONFIG);
});

describe('millrace route', () => {
  it('explains types for people', async () => {
    const { stdout } = await run(routeCommand, ['labtest.order.created', 'raw.x', '--config', config]);
    expect(stdout).toContain('routes[0], by "labtest."');
    expect(stdout).toContain('labs, destination eu');
    expect(stdout).toContain('none: the event goes nowhere');
  });

  it('explains types for machines', async () => {
    const types = ['labtest.order.created', 'raw.x'];
    const { stdout } = await run(routeCommand, [...types, '--json', '--config', config]);
    expect(JSON.parse(stdout).results).toMatchObject([
      {
        type: 'labtest.order.created',
        rule: { index: 0, match: 'labtest.' },
        targets: [
          { sink: 'labs', destination: 'eu' },
          { sink: 'archive', destination: null },
        ],
      },
      { type: 'raw.x', rule: null, targets: [] },
    ]);
  });

  it('reads an event: its type, ids and size', async () => {
    const body = '{"event_type":"daily.data.meal.created","team_id":"t","user_id":"u","data":"ü"}';
    const file = temporaryFile('event.json', body);
    const { stdout } = await run(routeCommand, ['--event', file, '--json', '--config', config]);
    expect(JSON.parse(stdout).results).toMatchObject([
      {
        type: 'daily.data.meal.created',
        rule: { index: 1 },
        event: { team: 't', user: 'u', clientUser: null, key: 'u', bytes: Buffer.byteLength(body) },
      },
    ]);
  });

  it.each<[string, () => string[]]>([
    ['nothing to explain', () => []],
    ['a missing event file', () => ['--event', '/no/such.json']],
    ['an event that is not JSON', () => ['--event', temporaryFile('event.json', 'nope')]],
    ['an event without a type', () => ['--event', temporaryFile('event.json', '{"type":"x"}')]],
    ['an event that is null', () => ['--event', temporaryFile('event.json', 'null')]],
  ])('refuses %s', async (_, args) => {
    await expect(run(routeCommand, [...args(), '--config', config])).rejects.toMatchObject({
      code: 'usage',
      exit: 2,
    });
  });

  it('has examples in its help', async () => {
    let help = '';
    const command = (io: Io) => routeCommand(io).configureOutput({ writeOut: (text) => (help += text) });
    await expect(run(command, ['--help'])).rejects.toMatchObject({ code: 'commander.helpDisplayed' });
    expect(help).toContain('millrace route --event event.json');
  });
});

const redactedConfig = (): string =>
  temporaryFile(
    'redacted.yaml',
    `
signing: { scheme: none, insecure: true }
sinks: { labs: { type: stdout }, archive: { type: files, path: /tmp/made-up } }
routes:
- { match: labtest., to: [labs, archive], redact: [/data/patient_detials/first_name, /data/*/dob] }
- { match: '*', to: archive }
`,
  );

describe('what leaves', () => {
  it('is said for each target, and a name that is documented nowhere is a warning', async () => {
    const { stdout, stderr } = await run(routeCommand, ['labtest.x', '--config', redactedConfig()]);
    expect(stdout).toContain('labs: /data/patient_detials/first_name, /data/*/dob as null');
    expect(stdout).toMatch(/^ +archive$/m);
    expect(stderr).toContain(
      'no documented event has a member "patient_detials"; did you mean "patient_details"?',
    );
    expect(stderr).not.toContain('"dob"');
  });

  it('is in the table of `check`, and in what it compares', async () => {
    const { stdout, stderr } = await run(checkCommand, ['--config', redactedConfig()]);
    expect(stdout).toMatch(/LEAVES[\s\S]*archive +all/);
    expect(stderr).toContain('did you mean "patient_details"?');
  });
});
