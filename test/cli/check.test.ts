import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { checkCommand } from '../../src/cli/check/command.ts';
import type { SINK_KEYS } from '../../src/config/lists.ts';
import { temporaryFile } from '../config/helpers.ts';
import { run } from './run.ts';

const GOOD = `
signing: { secrets: ["\${MILLRACE_SECRET}"] }
sinks: { archive: { type: files, path: ./data/archive } }
routes: [{ match: "*", to: archive }]
`;

describe('millrace check', () => {
  it('says that it is valid, what differs from the defaults, and the routes', async () => {
    const text = `${GOOD}server: { port: 9000, host: 0.0.0.0 }\n`.replace(
      'files, path',
      'files, required: true, path',
    );
    const { stdout, stderr } = await run(checkCommand, ['--config', temporaryFile('c.yaml', text)]);
    expect(stderr).toMatch(/^warning: .*MILLRACE_SECRET.*\n$/);
    expect(stdout.replace(/^# .*c\.yaml/, '# c.yaml')).toBe(`# c.yaml: valid, with 1 warning
server:
  port: 9000
sinks:
  archive:
    type: files
    path: ./data/archive

ROUTE      MATCH  SINK     DESTINATION
routes[0]  *      archive
`);
  });

  it('prints each key of a sink that is not as by default', async () => {
    const own = {
      type: 'stdout',
      required: false,
      oversize: 'claim-check',
      continues: 'former',
      claimCheck: 'archive',
    } satisfies Record<(typeof SINK_KEYS)[number], unknown>;
    const text = GOOD.replace('archive: {', `own: ${JSON.stringify(own)}, archive: {`);
    const file = temporaryFile('c.yaml', text);
    const { stdout } = await run(checkCommand, ['--config', file]);
    expect(parse(stdout.split('\n\n')[0] ?? '').sinks.own).toEqual(own);
    const all = await run(checkCommand, ['--resolved', '--config', file]);
    expect(parse(all.stdout.split('\n\n')[0] ?? '').sinks.own).toEqual(own);
  });

  it('prints the resolved config, redacted, and the route table', async () => {
    const file = temporaryFile('c.yaml', GOOD);
    const { stdout, stderr, exit } = await run(checkCommand, ['--resolved', '--config', file], {
      MILLRACE_SECRET: 'whsec_' + Buffer.alloc(24, 7).toString('base64'),
    });
    expect(exit).toBe(0);
    expect(stderr).toBe('');
    expect(stdout).not.toContain('whsec_');
    const [yaml = '', table = ''] = stdout.split('\n\n');
    expect(parse(yaml)).toMatchObject({ signing: { secrets: ['[redacted]'] }, journal: { retention: '7d' } });
    expect(table).toBe('ROUTE      MATCH  SINK     DESTINATION\nroutes[0]  *      archive\n');
  });

  it('shows the defaults of sinks and sources too', async () => {
    const text = `${GOOD}sources: { feed: { type: pubsub, project: acme-health, subscription: feed } }\n`;
    const { stdout } = await run(checkCommand, ['--resolved', '--config', temporaryFile('c.yaml', text)]);
    expect(parse(stdout.split('\n\n')[0] ?? '')).toMatchObject({
      sinks: {
        archive: { compress: 'gzip', rotate: { bytes: '128MiB', every: '1h' }, partitionBy: ['date'] },
      },
      sources: { feed: { held: { messages: 1000, bytes: '64MiB' }, timeout: '15s' } },
    });
    const json = await run(checkCommand, ['--json', '--config', temporaryFile('c.yaml', text)]);
    expect(JSON.parse(json.stdout).config.sinks.archive.rotate).toEqual({ bytes: 2 ** 27, every: 3_600_000 });
  });

  it('checks without the secrets, and says what it missed', async () => {
    const { stdout, stderr } = await run(checkCommand, ['--json'], {
      MILLRACE_CONFIG: temporaryFile('c.yaml', GOOD),
    });
    const result = JSON.parse(stdout);
    expect(result.config.journal.retention).toBe(604_800_000);
    expect(result.routes).toEqual([{ index: 0, match: ['*'], to: [{ sink: 'archive', destination: null }] }]);
    expect(result.warnings).toEqual([expect.stringContaining('MILLRACE_SECRET')]);
    expect(stderr).toMatch(/^warning: .*MILLRACE_SECRET/);
  });

  it('refuses a config that names no secret at all, as serve does', async () => {
    const file = temporaryFile('c.yaml', GOOD.replace(/signing: .*/, ''));
    await expect(run(checkCommand, ['--config', file])).rejects.toMatchObject({ code: 'secret_missing' });
  });

  it('lets sinks judge their options', async () => {
    const file = temporaryFile('c.yaml', GOOD.replace('./data/archive', './data/archive, compress: rar'));
    await expect(run(checkCommand, ['--config', file])).rejects.toMatchObject({
      exit: 2,
      detail: expect.stringContaining('sinks.archive.compress: '),
    });
  });

  it('notices a secret that cannot be one, and does not print it', async () => {
    const file = temporaryFile('c.yaml', GOOD);
    const outcome = run(checkCommand, ['--config', file], { MILLRACE_SECRET: 'whsec_not*base64' });
    await expect(outcome).rejects.toMatchObject({
      exit: 2,
      detail: expect.stringContaining('signing.secrets[0]'),
    });
    await expect(outcome).rejects.not.toMatchObject({ detail: expect.stringContaining('base64*') });
  });

  it('does not ask a sink about a placeholder', async () => {
    const file = temporaryFile('c.yaml', GOOD.replace('path: ./data/archive', 'compress: "${HOW}"'));
    expect((await run(checkCommand, ['--config', file])).stderr).toContain('sinks.archive.compress: needs');
  });

  it('ends with every problem', async () => {
    const file = temporaryFile('c.yaml', `server: { prot: 1 }\nlog: { level: loud }\n${GOOD}`);
    await expect(run(checkCommand, ['--config', file])).rejects.toMatchObject({
      exit: 2,
      detail: expect.stringMatching(/log\.level.*\n.*server\.prot.*did you mean server\.port/),
    });
  });
});
