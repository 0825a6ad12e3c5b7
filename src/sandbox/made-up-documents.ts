import { uuidOf } from './seeded.ts';

/** What a made-up document is about. */
export interface About {
  readonly type: string;
  /** Makes documents of a type differ. */
  readonly n: number;
  readonly user: string;
  readonly team: string;
  /** Identifier of the document. */
  readonly id: string;
}

/** The `data` of an event of a documented type, with every member of today; null for another type. */
export function madeUpDocument(about: About): unknown {
  const { type } = about;
  const name = type.replace(/^(historical\.data)\..*|\.[^.]*$/, '$1');
  const text = DOCUMENTS[type] ?? DOCUMENTS[name] ?? SAMPLES.get(name);
  if (text === undefined) return null;
  const first = type.endsWith('.created') ? FIRST[name] : undefined;
  const document = filled(text, about);
  return first === undefined ? document : { ...Object(document), ...Object(filled(first, about)) };
}

const START_MS = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;

/** Parses a document with its placeholders filled in: `{at-480}` is a time 480 minutes before that of the document. */
function filled(text: string, { type, n, user, team, id }: About): unknown {
  const at = (minutes: number): string =>
    new Date(START_MS + (n + minutes) * MINUTE_MS).toISOString().replace('.000Z', '+00:00');
  const when = { day: at(0).slice(0, 10), created: at(1), updated: at(type.endsWith('.updated') ? 61 : 1) };
  const values: Readonly<Record<string, string>> = { id, user, team, n: String(n), ...when };
  return JSON.parse(
    text.replaceAll(/\{(\w+)([+-]\d+)?\}/g, (_, name: string, minutes = '0') =>
      name === 'at' ? at(Number(minutes)) : (values[name] ?? uuidOf(id, name)),
    ),
  );
}

const DEVICE = uuidOf('made-up device');
const SOURCE = `"provider":"made_up","type":"watch","app_id":"made.up","device_id":"${DEVICE}"`;
const RECORD = `"id":"{id}","user_id":"{user}","source":{${SOURCE}},"created_at":"{created}","updated_at":"{updated}"`;
const BESIDE = `"source_provider":"made_up","source_type":"watch","source_app_id":"made.up","source_device_id":"${DEVICE}"`;
const SPORT = '{"id":1,"name":"Running","slug":"running"}';
const BRAND = '{"name":"Made up","slug":"made_up","logo":"https://made-up.invalid/logo.png"}';
const HOME =
  '"receiver_name":"Made Up","first_line":"1 Made-up Street","second_line":null,' +
  '"city":"Madeup","state":"ZZ","zip":"00000","country":"US","phone_number":"+15550100000"';

/** By event type, or by the type without its verb. Each member is as the service sends it. */
const DOCUMENTS: Readonly<Record<string, string>> = {
  'historical.data': `
    {"user_id":"{user}","start_date":"2026-01-01T00:00:00+00:00","end_date":"2026-06-30T23:59:59+00:00",
    "provider":"made_up","is_final":true}`,
  'daily.data.meal': `
    {${RECORD},"name":"Made-up meal {n}","timestamp":"{at}","calendar_date":"{day}","provider_id":"made-up-{n}",
    "source_id":7,"source_app_id":"made.up","source_device_id":"${DEVICE}","priority_id":1,"energy":{"unit":"kcal",
    "value":212},"macros":{"carbs":25,"protein":6.5,"fats":{"total":0.8}},"micros":null,
    "data":{"Porridge, made up, 1 bowl":{"energy":{"unit":"kcal","value":210},"macros":{"carbs":12.5,"protein":3.25,
    "sugar":1.1,"fats":{"total":0.4,"saturated":0.1}},"micros":{"minerals":{"sodium":41}}},
    "Coffee, black, 1 tbsp(s)":{"energy":{"unit":"kcal","value":2},"macros":{"carbs":12.5,"protein":3.25,
    "sugar":1.1,"fats":{"total":0.4,"saturated":0.1}},"micros":{"minerals":{"sodium":41}}}}}`,
  'daily.data.sleep': `
    {${RECORD},"date":"{at}","calendar_date":"{day}","bedtime_start":"{at-480}","bedtime_stop":"{at}",
    "type":"long_sleep","state":"confirmed","timezone_offset":3600,"duration":28800,"total":26400,"awake":2400,
    "light":14400,"rem":6000,"deep":6000,"score":81,"recovery_readiness_score":74,"hr_lowest":48,"hr_average":55,
    "hr_resting":52,"hr_dip":11.5,"efficiency":91.5,"latency":600,"temperature_delta":0.1,"skin_temperature":34.2,
    "average_hrv":61.5,"respiratory_rate":14.5,"sleep_stream":{"heartrate":[{"id":1,"timezone_offset":3600,
    "unit":"bpm","timestamp":"{at-240}","value":54}],"hypnogram":[{"id":1,"timezone_offset":3600,"unit":"stage",
    "timestamp":"{at-480}","start":"{at-480}","end":"{at}","value":2}]}}`,
  'daily.data.sleep_cycle': `
    {${RECORD},${BESIDE},"sleep_id":"{sleep_id}","session_start":"{at-480}","session_end":"{at}",
    "time_zone":"Europe/Berlin","stage_start_offset_second":[0,600],"stage_end_offset_second":[600,28800],
    "stage_type":[1,2]}`,
  'daily.data.activity': `
    {${RECORD},"date":"{at}","calendar_date":"{day}","time_zone":"Europe/Berlin","timezone_offset":3600,
    "calories_total":2210.5,"calories_active":540.5,"steps":9120,"daily_movement":6800,"distance":6412.5,"low":120,
    "medium":42,"high":12,"floors_climbed":9,"wheelchair_use":true,"wheelchair_push":40,"heart_rate":{"avg_bpm":71,
    "min_bpm":48,"max_bpm":152,"resting_bpm":52,"avg_walking_bpm":96}}`,
  'daily.data.workouts': `
    {"id":"{id}","user_id":"{user}","source":{${SOURCE},"sport":"running","workout_id":"{id}"},
    "created_at":"{created}","updated_at":"{updated}","title":"Made-up run","calendar_date":"{day}",
    "timezone_offset":3600,"sport":${SPORT},"time_start":"{at-31}","time_end":"{at}","moving_time":1860,
    "provider_id":"made-up-{n}","average_hr":141,"max_hr":168,"hr_zones":[60,120,900,600,180,0],"calories":380.5,
    "steps":5100,"distance":5012.5,"total_elevation_gain":41.5,"elev_high":88,"elev_low":46.5,"average_speed":2.7,
    "max_speed":3.9,"average_watts":180.5,"device_watts":181,"max_watts":320,"weighted_average_watts":188,
    "map":{"polyline":"made_up_polyline","summary_polyline":"made_up"}}`,
  'daily.data.workout_stream': `
    {"user_id":"{user}","workout_id":"{id}","provider_id":"made-up-{n}",
    "message":"The stream of the workout can be read.","source":{${SOURCE},"sport":"running","workout_id":"{id}"},
    "sport":${SPORT}}`,
  'daily.data.body': `
    {${RECORD},"date":"{at}","calendar_date":"{day}","weight":70.25,"fat":21.5,"water_percentage":55.5,
    "muscle_mass_percentage":41.5,"visceral_fat_index":6,"bone_mass_percentage":4.1,"body_mass_index":22.4,
    "lean_body_mass_kilogram":55.5,"waist_circumference_centimeter":81.5}`,
  'daily.data.profile': `
    {${RECORD},"height":175,"birth_date":"1990-01-01","wheelchair_use":true,"gender":"other","sex":"female"}`,
  'daily.data.menstrual_cycle': `
    {${RECORD},${BESIDE},"period_start":"{day}","period_end":"{day}","cycle_end":"{day}","is_predicted":false,
    "menstrual_flow":[{"date":"{day}","flow":"light"}],"cervical_mucus":[{"date":"{day}","quality":"creamy"}],
    "intermenstrual_bleeding":[{"date":"{day}"}],"contraceptive":[{"date":"{day}","type":"oral"}],
    "detected_deviations":[{"date":"{day}","deviation":"irregular_menstrual_cycles"}],
    "ovulation_test":[{"date":"{day}","test_result":"negative"}],"home_pregnancy_test":[{"date":"{day}",
    "test_result":"negative"}],"home_progesterone_test":[{"date":"{day}","test_result":"negative"}],
    "sexual_activity":[{"date":"{day}","protection_used":true}],"basal_body_temperature":[{"date":"{day}",
    "value":36.4}]}`,
  'daily.data.electrocardiogram': `
    {${RECORD},${BESIDE},"session_start":"{at}","session_end":"{at+1}","time_zone":"Europe/Berlin",
    "voltage_sample_count":15360,"sampling_frequency_hz":512,"heart_rate_mean":64,"classification":"inconclusive",
    "inconclusive_cause":"poor_reading","algorithm_version":"2","source_device_model":"Made-up watch"}`,
  'provider.device': `
    {"id":"{id}","user_id":"{user}","provider":"made_up","source_type":"watch","app_id":"made.up",
    "device_manufacturer":"Made up","device_model":"Made-up watch","device_version":"1","device_id":"made-up-{n}"}`,
  'provider.connection': `
    {"user_id":"{user}","source":${BRAND},"provider":${BRAND},"external_user_id":"made-up-{n}",
    "resource_availability":{"meal":{"status":"available","scope_requirements":null}}}`,
  'provider.connection.error': `
    {"provider":"made_up","user_id":"{user}","message":"The made-up provider refused the token.",
    "error_type":"token_refresh_failed","error_details":"invalid_grant"}`,
  'labtest.order': `
    {"id":"{id}","team_id":"{team}","user_id":"{user}","created_at":"{created}","updated_at":"{updated}",
    "events":[{"id":1{n}00,"created_at":"{created}","status":"received.testkit.ordered","status_detail":null},
    {"id":1{n}01,"created_at":"{updated}","status":"completed.testkit.completed","status_detail":null}],
    "last_event":{"id":1{n}01,"created_at":"{updated}","status":"completed.testkit.completed","status_detail":null},
    "status":"completed","low_level_status":"completed","origin":"initial","patient_details":{"first_name":"Made",
    "last_name":"Up","phone_number":"+15550100000","gender":"other","dob":"1990-01-01T00:00:00+00:00",
    "email":"made-up@example.invalid"},"patient_address":{${HOME},"access_notes":null},
    "lab_test":{"id":"59c60af9-db8e-4c07-9898-5779d4ae2e12","slug":"made-up-panel-1","name":"Made-up panel 1",
    "sample_type":"serum","method":"testkit","price":41.5,"is_active":true,"status":"active","fasting":true,
    "lab":{"id":1,"slug":"made_up_lab_1","name":"Made-up laboratory 1","first_line_address":"1 Made-up Street",
    "city":"Madeup","zipcode":"00000","collection_methods":["testkit"],"sample_types":["serum"],"logo_url":null},
    "markers":[{"id":1,"name":"Made-up marker 1","slug":"made-up-marker-1","type":"biomarker","unit":"mg/dL"}],
    "is_delegated":false,"auto_generated":false,"has_collection_instructions":true,"common_tat_days":3,
    "worst_case_tat_days":7},"details":{"type":"testkit","data":{"id":"{details_id}","shipment":null,
    "created_at":"{created}","updated_at":"{updated}"}},"sample_id":"made-up-sample-{n}","notes":"A made-up order.",
    "clinical_notes":"Fasting.","physician":{"first_name":"Made","last_name":"Up","npi":"0000000000"},
    "health_insurance_id":"{insurance_id}","priority":false,"shipping_details":{${HOME}},
    "requisition_form_url":"https://made-up.invalid/requisitions/{id}.pdf","activate_by":"2026-06-30",
    "passthrough":"made-up-{n}","billing_type":"client_bill","icd_codes":["Z00.00"],"has_abn":false,
    "interpretation":"normal","has_missing_results":false,"expected_result_by_date":"{day}",
    "worst_case_result_by_date":"{day}","order_transaction":{"id":"{transaction_id}","status":"active",
    "orders":[{"id":"{id}","origin":"initial","created_at":"{created}","updated_at":"{updated}"}]}}`,
  'labtest.appointment': `
    {"id":"{id}","user_id":"{user}","order_id":"{order_id}","order_transaction_id":"{transaction_id}",
    "external_id":null,"provider_id":"made-up-{n}","address":{"first_line":"1 Made-up Street","second_line":null,
    "city":"Madeup","state":"ZZ","zip_code":"00000","unit":"2","access_notes":"Ring twice."},
    "location":{"lng":-71.06,"lat":42.36},"start_at":"{at+2880}","end_at":"{at+3000}",
    "iana_timezone":"America/New_York","type":"phlebotomy","provider":"made_up_phlebotomy_1","status":"confirmed",
    "can_reschedule":true,"appointment_notes":"Fasting.","event_status":"scheduled",
    "event_data":{"origin":"patient"},"events":[{"created_at":"{at}","status":"pending","data":null},
    {"created_at":"{at+1}","status":"scheduled","data":{"origin":"patient"}}]}`,
  'labtest.match_review': `
    {"id":"{id}","status":"resolved","decision_code":"wrong_lab","resolution_action":"accept",
    "sub_reason_codes":["lab_account_mismatch"],"resolved_user_id":"{user}","resolved_order_id":"{order_id}"}`,
  'labtest.result': `
    {"order_id":"{id}","sample_id":"made-up-sample-{n}","status":"completed","interpretation":"critical",
    "team_id":"{team}","user_id":"{user}","created_at":"{created}","updated_at":"{updated}"}`,
  'lab_report.parsing_job': `
    {"id":"{id}","status":"completed","failure_reason":null,"data":{"metadata":{"patient_first_name":"Made",
    "patient_last_name":"Up","dob":"1990-01-01","gender":"other","lab_name":"made_up_lab_1",
    "date_reported":"2026-01-03","date_collected":"2026-01-01","specimen_number":"MADE-UP-1"},
    "results":[{"test_name":"Made-up marker 1","value":"10.5","units":"mg/dL","sample_type":"serum_plasma_blood",
    "min_reference_range":1,"max_reference_range":20,"interpretation":"normal",
    "loinc_matches":[{"loinc_code":"90001-1","loinc_name":"Made-up marker 1","confidence_score":0.9}]}]},
    "needs_human_review":false,"is_reviewed":false}`,
  'continuous_query.result_table': `
    [{"query_id":"{id}","query_slug":"made-up-query","data":{"day":["{day}"],"average_heartrate":[62.5]}}]`,
};

/** What differs in the first event of a document, by the type without its verb. */
const FIRST: Readonly<Record<string, string>> = {
  'labtest.order': `
    {"status":"received","low_level_status":"ordered","interpretation":null,"events":[{"id":1{n}00,
    "created_at":"{created}","status":"received.testkit.ordered","status_detail":null}],"last_event":{"id":1{n}00,
    "created_at":"{created}","status":"received.testkit.ordered","status_detail":null}}`,
  'lab_report.parsing_job': '{"status":"started","data":null}',
};

/** Samples of one moment: resource, unit, members. */
const MOMENTS = `
  blood_oxygen % "value":97 | fat % "value":21.5 | glucose mmol/L "value":5.4 | heartrate bpm "value":62
  hrv rmssd "value":48.5 | respiratory_rate brpm "value":14.5 | stress_level % "value":31 | water ml "value":250
  weight kg "value":70.25 | calories_basal kcal "value":68.5 | floors_climbed count "value":3
  cholesterol mmol/L "type":"ldl","value":2.9 | electrocardiogram_voltage V "type":"lead_1","value":0.00042
  ige kU/L "type":"made_up_pollen","value":12.5 | igg mg/L "type":"made_up_food","value":3.1
  blood_pressure mmHg "systolic":118,"diastolic":76,"grouping":[]`;

/** Samples of a span of time: resource, unit, members. */
const SPANS = `
  fall count "value":1 | handwashing count "value":1 | heart_rate_recovery_one_minute count "value":28
  inhaler_usage count "value":1 | sleep_apnea_alert count "value":1 | steps count "value":812
  wheelchair_push count "value":40 | workout_swimming_stroke count "value":22 | caffeine mg "value":80
  carbohydrates g "value":45.5 | mindfulness_minutes min "value":12 | vo2_max mL/kg/min "value":41.5
  distance m "value":640.5 | workout_distance m "value":5012.5 | daylight_exposure min "value":25
  stand_duration min "value":9 | forced_expiratory_volume_1 L "value":3.4 | forced_vital_capacity L "value":4.2
  body_mass_index index "value":22.4 | uv_exposure index "value":3 | calories_active kcal "value":41.5
  afib_burden % "value":1.5 | peak_expiratory_flow_rate L/min "value":480 | lean_body_mass kg "value":55.5
  basal_body_temperature °C "value":36.4 | waist_circumference cm "value":81.5 | note text "value":"Made up.","tags":["food"]
  body_temperature °C "value":36.6,"sensor_location":"finger" | body_temperature_delta °C "value":-0.2,"sensor_location":"finger"
  heart_rate_alert count "type":"irregular_rhythm","value":1 | workout_duration min "value":31,"intensity":"medium"
  insulin_injection unit "type":"rapid_acting","value":4.5,"delivery_mode":"bolus","bolus_purpose":"meal","delivery_form":"standard"
  stand_hour count "type":"stood","value":1 | sleep_breathing_disturbance count "type":"not_elevated","value":2`;

const SAMPLES: ReadonlyMap<string, string> = new Map([
  ...samplesOf(MOMENTS, ''),
  ...samplesOf(SPANS, ',"start":"{at}","end":"{at+10}"'),
]);

/** @param span start and end of a sample */
function samplesOf(table: string, span: string): [type: string, document: string][] {
  const lines = table.matchAll(/(\w+) (\S+) ("[^|\n]*[^|\s])/g);
  return Array.from(lines, ([, resource = '', unit = '', members = '']) => {
    const sample = `"id":1,"timezone_offset":3600,"timestamp":"{at}"${span},"unit":"${unit}",${members}`;
    return [`daily.data.${resource}`, `{"source":{${SOURCE}},"data":[{${sample}}]}`];
  });
}
