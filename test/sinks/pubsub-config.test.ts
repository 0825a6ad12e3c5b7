import { describe, expect, it } from 'vitest';
import { parseOptions } from '../../src/sinks/pubsub/config.ts';

describe('pubsub options', () => {
  it('needs a project only', () => {
    expect(parseOptions({ project: 'acme' })).toEqual({
      project: 'acme',
      topic: null,
      ordering: false,
      compression: 'auto',
      maxEventBytes: 10_000_000,
      timeout: 15_000,
      endpoint: null,
    });
  });

  it('takes sizes, durations, addresses and topics of other projects', () => {
    const options = {
      project: 'acme',
      topic: 'projects/other/topics/events',
      maxEventBytes: '1MiB',
      timeout: '5s',
      endpoint: 'europe-west1-pubsub.googleapis.com:443',
    };
    expect(parseOptions(options)).toMatchObject({ ...options, maxEventBytes: 2 ** 20, timeout: 5000 });
  });

  it.each([
    [{}, 'project'],
    [{ project: 'a/b' }, 'project'],
    [{ project: 'acme', topic: 'ab' }, 'topic'],
    [{ project: 'acme', topic: 'google-events' }, 'topic'],
    [{ project: 'acme', topic: 'a b c' }, 'topic'],
    [{ project: 'acme', compression: 'zstd' }, 'compression'],
    [{ project: 'acme', ordering: 'yes' }, 'ordering'],
    [{ project: 'acme', maxEventBytes: '11MB' }, 'maxEventBytes'],
    [{ project: 'acme', timeout: 1 }, 'timeout'],
    [{ project: 'acme', endpoint: 'a b' }, 'endpoint'],
    [{ project: 'acme', subject: 'x' }, 'subject'],
  ])('%j names %s', (options, key) => {
    expect(() => parseOptions(options)).toThrow(key);
  });
});
