import { describe, expect, it } from 'vitest';
import { parseOptions } from '../../src/sinks/event-hubs/config.ts';

const KEY = 'SharedAccessKeyName=send;SharedAccessKey=c2VjcmV0cw==';
const connectionString = `Endpoint=sb://acme.servicebus.windows.net/;${KEY}`;

describe('options of the event-hubs sink', () => {
  it('has defaults for everything but the connection', () => {
    expect(parseOptions({ connectionString })).toEqual({
      connection: { by: 'key', connectionString },
      hub: null,
      compression: 'auto',
      timeout: 15_000,
      maxEventBytes: 2 ** 20,
      batch: { count: 500, bytes: 4 * 2 ** 20 },
    });
  });

  it('takes the default hub from an EntityPath, and the EntityPath out of the way', () => {
    const named = parseOptions({ connectionString: `${connectionString};EntityPath=meals` });
    expect(named).toMatchObject({ hub: 'meals', connection: { connectionString } });
    expect(parseOptions({ connectionString, hub: 'events' }).hub).toBe('events');
    expect(() => parseOptions({ connectionString: `${connectionString};EntityPath=a`, hub: 'b' })).toThrow(
      /^hub: must be the EntityPath/,
    );
  });

  it('takes a namespace and an identity instead of a key', () => {
    const namespace = 'acme.servicebus.windows.net';
    expect(parseOptions({ fullyQualifiedNamespace: namespace }).connection).toEqual({
      by: 'identity',
      address: namespace,
      clientId: null,
    });
    const assigned = { fullyQualifiedNamespace: namespace, managedIdentityClientId: 'id' };
    expect(parseOptions(assigned).connection).toMatchObject({ clientId: 'id' });
  });

  it.each([
    [{}, /^connectionString: must be set/],
    [{ connectionString, fullyQualifiedNamespace: 'a.b' }, /^connectionString: must be left out/],
    [{ connectionString, managedIdentityClientId: 'id' }, /^managedIdentityClientId: needs/],
    [{ connectionString: 'Endpoint=sb://a.b/' }, /^connectionString: must hold Endpoint/],
    [{ connectionString: KEY }, /^connectionString: must hold Endpoint/],
    [{ connectionString, hub: 'a/b' }, /^hub: must be the name/],
    [{ connectionString, compression: 'zstd' }, /^compression: /],
    [{ connectionString, timeout: '1ms' }, /^timeout: /],
    [{ connectionString, topic: 'x' }, /topic/],
  ])('refuses %#', (options, message) => {
    expect(() => parseOptions(options)).toThrow(message);
    expect(() => parseOptions(options)).not.toThrow(/c2VjcmV0cw/);
  });
});
