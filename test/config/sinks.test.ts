import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { resolveSinks, type LoadSinkModule } from '../../src/config/sinks.ts';
import { MillraceError } from '../../src/core/errors.ts';
import type { SinkModule } from '../../src/core/sink.ts';
import { parse } from './helpers.ts';

const TEXT = `
sinks:
  archive: { type: files, required: false, path: x }
  hubs: { type: event-hubs, connectionString: hunter2 }
`;

function moduleThat(parseOptions: (options: unknown) => unknown): SinkModule {
  return { parseOptions, createSink: () => expect.fail('no sink may be made here') };
}

describe('resolveSinks', () => {
  it('hands each module its own options, without type and required, and the folder of the config', async () => {
    const load = vi.fn<LoadSinkModule>(async () => moduleThat((options) => ({ parsed: options })));
    const sinks = await resolveSinks({ ...parse(TEXT), file: '/etc/millrace/c.yaml' }, load);
    expect(load).toHaveBeenCalledWith('files', '/etc/millrace');
    expect(sinks.map(({ name, type, required, options }) => ({ name, type, required, options }))).toEqual([
      { name: 'archive', type: 'files', required: false, options: { parsed: { path: 'x' } } },
      {
        name: 'hubs',
        type: 'event-hubs',
        required: true,
        options: { parsed: { connectionString: 'hunter2' } },
      },
    ]);
  });

  it.each([
    ['connectionString: must be text', 'sinks.hubs.connectionString: must be text'],
    ['connectionString must be text', 'sinks.hubs.connectionString: must be text'],
    ['rotate.bytes: too small; by[0]: no', 'sinks.hubs.rotate.bytes: too small\nsinks.hubs.by[0]: no'],
    ['Cannot make sense of it', 'sinks.hubs: Cannot make sense of it'],
    ['sinks.hubs.hub: is missing', 'sinks.hubs.hub: is missing'],
    ['connectionString: "hunter2" is not one', 'sinks.hubs.connectionString: "[redacted]" is not one'],
  ])('turns %j into %j', async (message, expected) => {
    const load = async (type: string): Promise<SinkModule> =>
      moduleThat((options) => {
        if (type === 'event-hubs') throw new Error(message);
        return options;
      });
    await expect(resolveSinks(parse(TEXT), load)).rejects.toMatchObject({
      code: 'config_invalid',
      detail: expected,
    });
  });

  it('reads the issues of zod, of every sink at once', async () => {
    const schema = z.object({ hub: z.string({ error: 'is missing' }) });
    await expect(
      resolveSinks(parse(TEXT), async () => moduleThat((o) => schema.parse(o))),
    ).rejects.toMatchObject({
      code: 'config_invalid',
      detail: 'sinks.archive.hub: is missing\nsinks.hubs.hub: is missing',
    });
  });

  it('says so when a module cannot be loaded', async () => {
    const missing = new MillraceError('sink_module_invalid', 'no such type');
    await expect(resolveSinks(parse(TEXT), () => Promise.reject(missing), ['hubs'])).rejects.toMatchObject({
      code: 'sink_module_invalid',
      detail: 'sinks.hubs.type: no such type',
    });
  });
});
