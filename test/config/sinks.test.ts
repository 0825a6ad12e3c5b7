import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { ResolvedConfig } from '../../src/config/config.ts';
import { resolveText } from '../../src/config/load.ts';
import type { Modules } from '../../src/config/modules.ts';
import { MillraceError } from '../../src/core/errors.ts';
import type { LazySinkModule } from '../../src/core/sink.ts';

type LoadSinkModule = Modules['sink'];

const TEXT = `
sinks:
  archive: { type: files, required: false, path: x }
  hubs: { type: event-hubs, connectionString: hunter2 }
`;

/** Resolved with a loader of modules of this test's own. */
function resolved(sink: LoadSinkModule, text = TEXT, file = 'c.yaml'): Promise<ResolvedConfig> {
  return resolveText(text, { file, env: {} }, { sink, source: () => expect.fail('there are no sources') });
}

function moduleThat(parseOptions: (options: unknown) => unknown): LazySinkModule {
  return { parseOptions, load: () => expect.fail('no sink may be made here') };
}

describe('resolveText', () => {
  it('hands each module its own options, without type and required, and the folder of the config', async () => {
    const load = vi.fn<LoadSinkModule>(async () => moduleThat((options) => ({ parsed: options })));
    const { config, sinks } = await resolved(load, TEXT, '/etc/millrace/c.yaml');
    expect(load).toHaveBeenCalledWith('files', '/etc/millrace');
    expect(
      [...sinks.values()].map(({ name, options }) => {
        const { type, required } = config.sinks[name] ?? {};
        return { name, type, required, options };
      }),
    ).toEqual([
      { name: 'archive', type: 'files', required: false, options: { parsed: { path: 'x' } } },
      {
        name: 'hubs',
        type: 'event-hubs',
        required: true,
        options: { parsed: { connectionString: 'hunter2' } },
      },
    ]);
  });

  it('refuses a route to a place that a sink says it does not have', async () => {
    const module = { ...moduleThat((options) => options), describe: () => ({ destinations: ['billing'] }) };
    const routed = (to: string): Promise<ResolvedConfig> =>
      resolved(
        async () => module,
        `sinks: { web: { type: files } }\nroutes: [{ match: '*', to: ['${to}'] }]`,
      );
    await expect(routed('web:billing')).resolves.toBeDefined();
    await expect(routed('web:biling')).rejects.toMatchObject({
      detail: 'c.yaml:2:29: routes[0].to[0]: the sink web has no destination biling; it has web:billing',
    });
    await expect(routed('web')).rejects.toMatchObject({
      detail: 'c.yaml:2:29: routes[0].to[0]: the sink web has no default destination; it has web:billing',
    });
  });

  it.each([
    ['connectionString: must be text', 'c.yaml:4:47: sinks.hubs.connectionString: must be text'],
    ['connectionString must be text', 'c.yaml:4:47: sinks.hubs.connectionString: must be text'],
    [
      'rotate.bytes: too small; by[0]: no',
      'c.yaml:4:9: sinks.hubs.rotate.bytes: too small\nc.yaml:4:9: sinks.hubs.by[0]: no',
    ],
    ['Cannot make sense of it', 'c.yaml:4:9: sinks.hubs: Cannot make sense of it'],
    ['sinks.hubs.hub: is missing', 'c.yaml:4:9: sinks.hubs.hub: is missing'],
    [
      'connectionString: "hunter2" is not one',
      'c.yaml:4:47: sinks.hubs.connectionString: "[redacted]" is not one',
    ],
  ])('turns %j into %j', async (message, expected) => {
    const load = async (type: string): Promise<LazySinkModule> =>
      moduleThat((options) => {
        if (type === 'event-hubs') throw new Error(message);
        return options;
      });
    await expect(resolved(load)).rejects.toMatchObject({
      code: 'config_invalid',
      detail: expected,
    });
  });

  it('reads the issues of zod, of every sink at once', async () => {
    const schema = z.object({ hub: z.string({ error: 'is missing' }) });
    await expect(resolved(async () => moduleThat((o) => schema.parse(o)))).rejects.toMatchObject({
      code: 'config_invalid',
      detail: 'c.yaml:3:12: sinks.archive.hub: is missing\nc.yaml:4:9: sinks.hubs.hub: is missing',
    });
  });

  it('names the packages that a sink needs and that are not there', async () => {
    const packages: Record<string, string[]> = {
      files: ['zod'],
      'event-hubs': ['zod', 'not-there', '@not/there-either'],
    };
    const load: LoadSinkModule = async (type) => ({
      ...moduleThat((options) => options),
      describe: () => ({ packages: packages[type] ?? [] }),
    });
    await expect(resolved(load)).rejects.toMatchObject({
      code: 'config_invalid',
      detail:
        'c.yaml:4:17: sinks.hubs.type: needs not-there, @not/there-either, not installed beside millrace: ' +
        'npm install --omit=optional not-there @not/there-either',
    });
  });

  it('says so when a module cannot be loaded', async () => {
    const missing = new MillraceError('sink_module_invalid', 'no such type');
    await expect(resolved(() => Promise.reject(missing))).rejects.toMatchObject({
      code: 'sink_module_invalid',
      detail: 'c.yaml:3:20: sinks.archive.type: no such type\nc.yaml:4:17: sinks.hubs.type: no such type',
    });
  });
});
