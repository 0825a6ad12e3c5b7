import { expect, test } from 'vitest';
import { Place } from '../support/place.ts';

const OTHER_SECRET = `whsec_${Buffer.from('another made-up secret of a test').toString('base64')}`;

test('status says what to do: about refused deliveries, since when, and about what is set aside', async () => {
  const place = await Place.make();
  const receiver = await place.start();
  expect(await place.ok('status')).toMatch(/refused +since the start at .*: none\n/);
  await receiver.post(undefined, { secret: OTHER_SECRET });
  await receiver.post(Buffer.from('{"made_up":'), { id: 'msg_invalid' });
  const said = await place.ok('status');
  expect(said).toMatch(
    /refused +since the start at .*: 1 signature_invalid\n +the last \d+s ago\n +if these are genuine/,
  );
  expect(said).toMatch(/quarantine +1: millrace quarantine list\n/);
  expect(said).toMatch(/dead letters 0\n/);
});
